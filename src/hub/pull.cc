#include "hub/pull.h"

#include <fmt/format.h>

#include <algorithm>

#include "hub/pull_folder.h"
#include "hub/transfer.h"

namespace octavo::hub {
namespace {

constexpr size_t kMaxToken = 4096;

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

Result<std::string> pull_file(const Transfer& transfer, const FileList& files, const HubName& name,
                              const HubOptions& options) {
  OCTAVO_TRY(const HubFile file, choose_file(files.gguf, name.file, name.repository()));
  const std::string path = cache_path({.org = name.org, .name = name.name, .file = file.path});
  if (is_whole(path, file)) return path;
  OCTAVO_TRY(PartialFile partial, PartialFile::open(path, file));
  OCTAVO_CHECK_OK(transfer.fetch(file, partial, [&] {
    if (options.on_progress) options.on_progress(partial.size(), file.size);
  }));
  OCTAVO_CHECK_OK(partial.finish());
  return path;
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
                   : pull_file(transfer, files, name, options);
}

}  // namespace octavo::hub
