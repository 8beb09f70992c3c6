#include "hub/pull.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "hub/file_list.h"
#include "hub/http_get.h"
#include "hub/partial_file.h"

namespace octavo::hub {
namespace {

constexpr size_t kMaxListBytes = 8 << 20;
constexpr int kMaxPages = 50;
constexpr double kListSeconds = 60;
constexpr int kMaxFruitless = 3;  // attempts in a row that bring nothing
constexpr size_t kMaxToken = 4096;

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

Error offline(const Error& error) {
  const std::vector<std::string> cached = cached_hub_models();
  return {error.code,
          fmt::format("offline: {}. {} holds {}", error.message, hub_folder(),
                      cached.empty() ? "no models" : fmt::format("{}", fmt::join(cached, ", ")))};
}

tl::unexpected<Error> refused(int status, const HubName& name, const HubOptions& options) {
  if (status == 401 || status == 403)
    return fail(ErrorCode::io_error,
                fmt::format("{} is not given to everybody, or is not there (HTTP {}): {}",
                            name.repository(), status,
                            options.token.empty()
                                ? "set HF_TOKEN to a token that may read it"
                                : "the token in HF_TOKEN may not read it; its terms may have to be "
                                  "accepted on the hub's page first"));
  if (status == 404)
    return fail(ErrorCode::not_found,
                fmt::format("{} has no {}; check the name", options.endpoint, name.text()));
  return fail(ErrorCode::io_error,
              fmt::format("{} answers HTTP {}; try again later", options.endpoint, status));
}

// One fetch from one hub.
class Pull {
 public:
  Pull(const HubName& name, const HubOptions& options, Origin origin)
      : name_(name), options_(options), origin_(std::move(origin)) {}

  Result<std::string> run() {
    warn_of_plain_token();
    OCTAVO_TRY(const std::vector<HubFile> files, list_files());
    OCTAVO_TRY(const HubFile file, choose_file(files, name_.file, name_.repository()));
    const std::string path = cache_path({.org = name_.org, .name = name_.name, .file = file.path});
    if (is_whole(path, file)) return path;
    OCTAVO_TRY(PartialFile partial, PartialFile::open(path, file));
    OCTAVO_CHECK_OK(fetch(file, partial));
    OCTAVO_CHECK_OK(partial.finish());
    return path;
  }

 private:
  void warn_of_plain_token() const {
    if (options_.token.empty() || origin_.scheme != "http" || origin_.is_loopback()) return;
    if (options_.on_note)
      options_.on_note(fmt::format(
          "HF_TOKEN goes to {} without encryption, as HF_ENDPOINT says http://", origin_.host));
  }

  Result<std::vector<HubFile>> list_files() const {
    std::vector<HubFile> files;
    std::string url = fmt::format("{}/api/models/{}/tree/main?recursive=true", options_.endpoint,
                                  name_.repository());
    for (int page = 0; page < kMaxPages && !url.empty(); ++page) {
      std::string body;
      OCTAVO_TRY(url, read_page(url, body));
      OCTAVO_TRY(std::vector<HubFile> more, parse_file_list(body));
      std::move(more.begin(), more.end(), std::back_inserter(files));
    }
    return files;
  }

  // Returns the URL of the next page.
  Result<std::string> read_page(const std::string& url, std::string& body) const {
    const auto answer =
        get({.url = url,
             .token = options_.token,
             .ca_file = options_.ca_file,
             .on_begin = {},
             .on_bytes = [&](std::string_view bytes) -> Result<void> {
               if (body.size() + bytes.size() > kMaxListBytes)
                 return fail(ErrorCode::io_error, "the hub's list of files is too long");
               body += bytes;
               return {};
             },
             .time_limit_s = kListSeconds});
    if (!answer) {
      const bool is_ours = answer.error().kind == GetError::Kind::refused;
      return tl::unexpected<Error>(is_ours ? answer.error().error : offline(answer.error().error));
    }
    if (answer->status != 200) return refused(answer->status, name_, options_);
    // A page elsewhere is none of this hub's, and must not see the token.
    const auto next = origin_of(answer->next);
    return next && *next == origin_ ? answer->next : std::string();
  }

  Result<void> fetch(const HubFile& file, PartialFile& partial) const {
    for (int fruitless = 0; !partial.is_complete();) {
      const int64_t before = partial.size();
      const Result<bool> goes_on = fetch_some(file, partial);
      if (!goes_on) return tl::unexpected<Error>(goes_on.error());
      fruitless = partial.size() > before ? 0 : fruitless + 1;
      if (fruitless >= kMaxFruitless)
        return fail(
            ErrorCode::io_error,
            fmt::format("{} does not come: {}. What there is of it is kept; try again later",
                        file.path, last_problem_));
      if (!partial.is_complete())
        std::this_thread::sleep_for(std::chrono::duration<double>(options_.retry_wait_s));
    }
    return {};
  }

  // One transfer. False: it was cut, or the server has a bad moment; another may bring more.
  Result<bool> fetch_some(const HubFile& file, PartialFile& partial) const {
    const auto answer =
        get({.url = fmt::format("{}/{}/resolve/main/{}", options_.endpoint, name_.repository(),
                                file.path),
             .token = options_.token,
             .ca_file = options_.ca_file,
             .from = partial.size(),
             .on_begin = [&](int64_t first) -> Result<void> {
               return first == partial.size() ? Result<void>() : partial.start_over();
             },
             .on_bytes = [&](std::string_view bytes) -> Result<void> {
               OCTAVO_CHECK_OK(partial.append(bytes));
               if (options_.on_progress) options_.on_progress(partial.size(), file.size);
               return {};
             }});
    if (!answer) {
      const GetError& error = answer.error();
      last_problem_ = error.error.message;
      if (error.kind == GetError::Kind::refused) return tl::unexpected<Error>(error.error);
      return false;
    }
    if (answer->status == 200 || answer->status == 206) {
      last_problem_ = "the hub sends less than its list names";
      return true;
    }
    last_problem_ = fmt::format("HTTP {}", answer->status);
    if (answer->status == 416) return partial.start_over().map([] { return false; });
    if (answer->status == 429 || answer->status >= 500) return false;
    return refused(answer->status, name_, options_);
  }

  const HubName& name_;
  const HubOptions& options_;
  Origin origin_;
  mutable std::string last_problem_;
};

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
  OCTAVO_TRY(Origin origin, origin_of(options.endpoint));
  return Pull(name, options, std::move(origin)).run();
}

}  // namespace octavo::hub
