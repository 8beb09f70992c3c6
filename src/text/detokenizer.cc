#include "text/detokenizer.h"

#include <algorithm>

namespace octavo {

void Detokenizer::append(TokenId id, std::string& out) {
  if (skip_special_ && tokenizer_->is_control(id) &&
      std::find(shown_.begin(), shown_.end(), id) == shown_.end())
    return;
  const std::string piece = tokenizer_->piece(id, state_);
  std::string_view bytes = piece;
  if (strip_ && !tokenizer_->has_pipeline() && !bytes.empty() && !tokenizer_->is_control(id)) {
    if (tokenizer_->adds_space_prefix() && bytes.front() == ' ') bytes.remove_prefix(1);
    strip_ = false;
  }
  repair_.push(bytes, out);
}

std::string Detokenizer::push(TokenId id) {
  std::string out;
  append(id, out);
  return out;
}

std::string Detokenizer::finish() {
  std::string out;
  repair_.finish(out);
  return out;
}

}  // namespace octavo
