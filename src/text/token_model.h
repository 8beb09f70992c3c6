// What differs between kinds of tokenizer: how ordinary text becomes tokens, and which bytes a
// token stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "text/merge.h"

namespace octavo {

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Appends the tokens of a run of ordinary text: no control token is recognised in it.
  // REQUIRES: valid UTF-8, at most kMaxTextBytes (text/tokenizer.h). Any number of threads may call
  // it at once.
  virtual Result<void> encode(std::string_view run, std::vector<TokenId>& out,
                              EncodeStats& stats) const = 0;

  // Appends the bytes of a token that is not a control token. REQUIRES: the vocabulary contains it.
  virtual void append_bytes(TokenId id, std::string& out) const = 0;
};

}  // namespace octavo
