#include "engine/pack_cache.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/hash.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".pack";
// A temporary file this old belongs to a program that was killed.
constexpr auto kAbandoned = std::chrono::hours(1);
// A tenth of a compute thread's weight: both jobs are short, and neither is worth waiting for.
constexpr int kNice = 10;

std::string canonical(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

// Linux counts priority per thread.
void lower_priority() { ::setpriority(PRIO_PROCESS, 0, kNice); }

bool is_abandoned(const PrivateFolder::Entry& entry) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return entry.name.starts_with(PrivateFolder::kTemporaryPrefix) &&
         now - std::chrono::nanoseconds(entry.modified_ns) > kAbandoned;
}

}  // namespace

Result<PackCache> PackCache::open(const std::string& folder, const ModelSource& model) {
  const std::optional<Hash128> key = pack_key(model);
  if (!key) return fail(ErrorCode::unsupported, "a model in memory has no pack file");
  OCTAVO_TRY(PrivateFolder opened, PrivateFolder::open(folder));
  return PackCache(std::move(opened), canonical(model.file()), *key);
}

PackCache::PackCache(PrivateFolder folder, std::string model, const Hash128& key)
    : folder_(std::move(folder)),
      prefix_(fmt::format("{:016x}-", hash64(std::as_bytes(std::span(model))))),
      key_(key),
      name_(fmt::format("{}{:016x}{:016x}{}", prefix_, key.high, key.low, kSuffix)) {}

Result<std::unique_ptr<PackFile>> PackCache::find(const ModelSource& model) const {
  auto file = folder_.map(name_);
  if (!file && file.error().code == ErrorCode::invalid_argument)
    return tl::make_unexpected(file.error());
  if (!file) return nullptr;
  auto pack = PackFile::open(std::move(*file), model, key_);
  if (!pack) return nullptr;  // store() puts a good one in its place
  folder_.touch(name_);
  pack->file().read_ahead();
  return std::make_unique<PackFile>(std::move(*pack));
}

Result<void> PackCache::store(std::span<const PackedTensor> tensors, uint64_t max_bytes) const {
  OCTAVO_CHECK_OK(write_pack(folder_, name_, key_, tensors));
  clean(max_bytes);
  return {};
}

void PackCache::clean(uint64_t max_bytes) const {
  std::vector<PrivateFolder::Entry> packs;
  for (PrivateFolder::Entry& entry : folder_.entries()) {
    const bool replaced = entry.name.starts_with(prefix_) && entry.name != name_;
    if (replaced || is_abandoned(entry))
      folder_.remove(entry.name);
    else if (entry.name.ends_with(kSuffix))
      packs.push_back(std::move(entry));
  }
  std::sort(packs.begin(), packs.end(),
            [](const auto& a, const auto& b) { return a.modified_ns > b.modified_ns; });
  uint64_t total = 0;
  for (const PrivateFolder::Entry& pack : packs) {
    total += pack.size;
    if (total > max_bytes && pack.name != name_) folder_.remove(pack.name);
  }
}

void PackCache::discard(const PackFile& pack) const {
  folder_.remove(name_, pack.file().identity());
}

PackJob::PackJob(State state, std::function<void(PackJob&, const std::stop_token&)> work)
    : state_(state) {
  try {
    thread_ = std::jthread([this, work = std::move(work)](const std::stop_token& stop) {
      lower_priority();
      work(*this, stop);
    });
  } catch (const std::system_error&) {
    // No thread to be had: the pack stays unchecked, or unwritten.
    state_ = State::sound;
  }
}

std::unique_ptr<PackJob> PackJob::check(std::shared_ptr<const PackCache> cache,
                                        const PackFile& pack) {
  const auto work = [cache = std::move(cache), &pack](PackJob& job, const std::stop_token& stop) {
    const auto result = pack.verify(stop);
    if (result || result.error().code == ErrorCode::cancelled) return job.settle(State::sound);
    cache->discard(pack);
    job.error_ = {result.error().code,
                  fmt::format("{}: what was generated may be wrong. The file has been removed; run "
                              "the same again",
                              result.error().message)};
    job.settle(State::damaged);
  };
  return std::unique_ptr<PackJob>(new PackJob(State::checking, work));
}

std::unique_ptr<PackJob> PackJob::write(std::shared_ptr<const PackCache> cache,
                                        std::vector<PackedTensor> tensors) {
  const auto work = [cache = std::move(cache), tensors = std::move(tensors)](
                        PackJob&, const std::stop_token&) {
    // A full disk or a read-only folder costs the next start its speed, nothing else.
    static_cast<void>(cache->store(tensors));
  };
  return std::unique_ptr<PackJob>(new PackJob(State::sound, work));
}

void PackJob::settle(State state) {
  state_.store(state, std::memory_order_seq_cst);  // notify must not look for sleepers before it
  state_.notify_all();
}

Result<void> PackJob::status() const {
  if (state_.load(std::memory_order_acquire) != State::damaged) return {};
  return tl::make_unexpected(error_);
}

Result<void> PackJob::verdict() const {
  state_.wait(State::checking, std::memory_order_acquire);
  return status();
}

}  // namespace octavo
