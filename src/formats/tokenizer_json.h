// Hugging Face's tokenizer.json: BPE, Unigram, WordPiece and WordLevel with the normalizers,
// pre-tokenizers, post-processors and decoders that models use. Any other part is refused by its
// name, for it would give other tokens than the model was trained on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/tokenizer_spec.h"

namespace octavo {

// `name` is for messages. Bos and eos are set only where the post-processor adds them.
// Errors: corrupt_file, unsupported.
Result<TokenizerSpec> parse_tokenizer_json(std::string_view text, const std::string& name);

// The token with this spelling, whatever its type.
std::optional<TokenId> find_token(const TokenizerSpec& spec, std::string_view spelling);

}  // namespace octavo
