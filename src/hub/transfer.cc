#include "hub/transfer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace octavo::hub {
namespace {

constexpr size_t kMaxListBytes = 8 << 20;
constexpr int kMaxPages = 50;
constexpr double kListSeconds = 60;
constexpr int kMaxFruitless = 3;  // attempts in a row that bring nothing

Error offline(const Error& error) {
  const std::vector<std::string> cached = cached_hub_models();
  return {error.code,
          fmt::format("offline: {}. {} holds {}", error.message, hub_folder(),
                      cached.empty() ? "no models" : fmt::format("{}", fmt::join(cached, ", ")))};
}

// what: was asked for.
tl::unexpected<Error> refused(int status, const std::string& what, const HubName& name,
                              const HubOptions& options) {
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
                fmt::format("{} has no {}; check the name", options.endpoint, what));
  return fail(ErrorCode::io_error,
              fmt::format("{} answers HTTP {}; try again later", options.endpoint, status));
}

}  // namespace

Result<Transfer> Transfer::create(const HubName& name, const HubOptions& options) {
  OCTAVO_TRY(Origin origin, origin_of(options.endpoint));
  Transfer transfer(name, options, std::move(origin));
  transfer.warn_of_plain_token();
  return transfer;
}

void Transfer::warn_of_plain_token() const {
  if (options_->token.empty() || origin_.scheme != "http" || origin_.is_loopback()) return;
  if (options_->on_note)
    options_->on_note(fmt::format(
        "HF_TOKEN goes to {} without encryption, as HF_ENDPOINT says http://", origin_.host));
}

Result<FileList> Transfer::list_files() const {
  FileList files;
  std::string url = fmt::format("{}/api/models/{}/tree/main?recursive=true", options_->endpoint,
                                name_->repository());
  for (int page = 0; page < kMaxPages && !url.empty(); ++page) {
    std::string body;
    OCTAVO_TRY(url, read_page(url, body));
    OCTAVO_CHECK_OK(add_file_list(body, files));
  }
  return files;
}

Result<std::string> Transfer::read_page(const std::string& url, std::string& body) const {
  const auto answer =
      get({.url = url,
           .token = options_->token,
           .ca_file = options_->ca_file,
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
  if (answer->status != 200) return refused(answer->status, name_->text(), *name_, *options_);
  // A page elsewhere is none of this hub's, and must not see the token.
  const auto next = origin_of(answer->next);
  return next && *next == origin_ ? answer->next : std::string();
}

Result<void> Transfer::fetch(const HubFile& file, PartialFile& partial,
                             const std::function<void()>& on_bytes) const {
  std::string problem;
  // A server may send the same part again and again.
  int64_t most = partial.size();
  for (int fruitless = 0; !partial.is_complete();) {
    const Result<bool> goes_on = fetch_some(file, partial, on_bytes, problem);
    if (!goes_on) return tl::unexpected<Error>(goes_on.error());
    fruitless = partial.size() > most ? 0 : fruitless + 1;
    most = std::max(most, partial.size());
    if (fruitless >= kMaxFruitless)
      return fail(ErrorCode::io_error,
                  fmt::format("{} does not come: {}. What there is of it is kept; try again later",
                              file.path, problem));
    if (!partial.is_complete())
      std::this_thread::sleep_for(std::chrono::duration<double>(options_->retry_wait_s));
  }
  return {};
}

Result<bool> Transfer::fetch_some(const HubFile& file, PartialFile& partial,
                                  const std::function<void()>& on_bytes,
                                  std::string& problem) const {
  const auto answer = get({.url = fmt::format("{}/{}/resolve/main/{}", options_->endpoint,
                                              name_->repository(), file.path),
                           .token = options_->token,
                           .ca_file = options_->ca_file,
                           .from = partial.size(),
                           .on_begin = [&](int64_t first) -> Result<void> {
                             return first == partial.size() ? Result<void>() : partial.start_over();
                           },
                           .on_bytes = [&](std::string_view bytes) -> Result<void> {
                             OCTAVO_CHECK_OK(partial.append(bytes));
                             if (on_bytes) on_bytes();
                             return {};
                           }});
  if (!answer) {
    const GetError& error = answer.error();
    problem = error.error.message;
    if (error.kind == GetError::Kind::refused) return tl::unexpected<Error>(error.error);
    return false;
  }
  if (answer->status == 200 || answer->status == 206) {
    problem = "the hub sends less than its list names";
    return true;
  }
  problem = fmt::format("HTTP {}", answer->status);
  if (answer->status == 416) return partial.start_over().map([] { return false; });
  if (answer->status == 429 || answer->status >= 500) return false;
  return refused(answer->status, fmt::format("file {} of {}", file.path, name_->repository()),
                 *name_, *options_);
}

}  // namespace octavo::hub
