// Fetches models from a Hugging Face-compatible hub into the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/hub_name.h"

namespace octavo::hub {

struct HubOptions {
  std::string endpoint = "https://huggingface.co";
  std::string token = {};    // empty: none
  std::string ca_file = {};  // whom to trust, PEM; empty: whom the system trusts
  std::function<void(int64_t done, int64_t total)> on_progress = {};  // bytes; may be empty
  std::function<void(const std::string&)> on_note = {};               // may be empty
  double retry_wait_s = 1;  // before a transfer that was cut goes on
};

// HF_ENDPOINT, HF_TOKEN (or HUGGING_FACE_HUB_TOKEN), SSL_CERT_FILE. invalid_argument: one that
// cannot be.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Result<HubOptions> hub_options(const Environment& environment);

// The path of the file, fetched and checked; one that is there and whole is not fetched again. Of a
// repository without GGUF files that holds a folder of safetensors: the path of the folder. A
// transfer that was cut goes on, also in the next run. Errors: not_found and invalid_argument
// (naming the files there are), unsupported (a folder whose config.json says that it cannot be
// run), io_error (no network: names what is in the cache; no permission: what to set),
// corrupt_file, resource_exhausted.
Result<std::string> pull(const HubName& name, const HubOptions& options);

}  // namespace octavo::hub
