#include "server/api_warnings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxHeaderBytes = 2048;

std::string to_ascii(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace

void add_warnings_header(const ApiWarnings& warnings, http::Headers& headers) {
  if (warnings.empty()) return;
  Json told = Json::array();
  size_t num_bytes = 0;
  for (const std::string& warning : warnings) {
    num_bytes += to_ascii(warning).size();
    if (num_bytes > kMaxHeaderBytes) break;
    told.push_back(warning);
  }
  if (const size_t left = warnings.size() - told.size(); left > 0)
    told.push_back(fmt::format("and {} more, which the server's log has", left));
  headers.push_back({std::string(kWarningsHeader), to_ascii(told)});
}

}  // namespace octavo
