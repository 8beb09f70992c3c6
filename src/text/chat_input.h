// What a chat template is rendered with. The JSON is ordered: tool descriptions print in the order
// they were sent in.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "text/chat_template.h"

namespace octavo {

struct ChatTemplate::Input {
  nlohmann::ordered_json messages;
  bool add_generation_prompt = true;
  nlohmann::ordered_json tools;  // null: the template sees none
  std::string bos_token,
      eos_token;  // spelled out; empty: the model has none, the template sees it undefined
  // More of them by their variables' names, such as unk_token.
  std::vector<std::pair<std::string, std::string>> more_tokens = {};
  nlohmann::ordered_json extra;  // object or null: further variables by name (chat_template_kwargs)
  int64_t now_s =
      0;  // for strftime_now: seconds since 1970-01-01 00:00 on the clock to be shown (local time)
  std::stop_token stop = {};  // ends the rendering, with the error cancelled
};

}  // namespace octavo
