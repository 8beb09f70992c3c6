#include "hub/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "hub/file_set.h"
#include "hub/pull_folder.h"
#include "hub/transfer.h"

namespace octavo::hub {
namespace {

constexpr size_t kMaxToken = 4096;

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// One file, or the parts of a model in several, whose first stands for all.
Result<std::string> pull_gguf(const Transfer& transfer, const FileList& files, const HubName& name,
                              const HubOptions& options) {
  OCTAVO_TRY(const std::vector<HubFile> chosen,
             choose_model(files.gguf, name.file, name.repository()));
  FileSet set(transfer, options, cache_folder(name));
  OCTAVO_CHECK_OK(set.fetch_missing(chosen, [&] {
    if (chosen.size() == 1) return;
    // Parts of two versions are no model; without one of them there is none.
    std::error_code error;
    for (const HubFile& file : chosen)
      if (!is_whole(set.path_of(file), file)) std::filesystem::remove(set.path_of(file), error);
  }));
  return set.path_of(chosen.front());
}

}  // namespace

Result<HubOptions> hub_options(const Environment& environment) {
  HubOptions options;
  if (const auto endpoint = environment("HF_ENDPOINT"); endpoint && !endpoint->empty())
    options.endpoint = *endpoint;
  while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
  if (const auto origin = origin_of(options.endpoint); !origin || !is_visible(options.endpoint))
    return fail(ErrorCode::invalid_argument,
                "HF_ENDPOINT is no address of a hub; it is as in https://huggingface.co");
  options.ca_file = environment("SSL_CERT_FILE").value_or("");
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    const auto token = environment(name);
    if (!token || token->empty()) continue;
    if (!is_visible(*token) || token->size() > kMaxToken)
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("{} is no token: it has blanks or other such characters in it", name));
    options.token = *token;
    break;
  }
  return options;
}

Result<std::string> pull(const HubName& name, const HubOptions& options) {
  OCTAVO_TRY(const Transfer transfer, Transfer::create(name, options));
  OCTAVO_TRY(const FileList files, transfer.list_files());
  const bool is_folder = name.file.empty() && files.gguf.empty() && !files.folder.empty();
  return is_folder ? pull_folder(transfer, files, name, options)
                   : pull_gguf(transfer, files, name, options);
}

}  // namespace octavo::hub
