// Where pack files are kept, and the work on them that goes on beside generation.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/private_folder.h"
#include "base/result.h"
#include "formats/model_source.h"
#include "model/pack_file.h"

namespace octavo {

// All packs of a folder together take this much at most; beyond it those unused longest go.
inline constexpr uint64_t kMaxPackFolderBytes = uint64_t{32} << 30;

// The place of one model file's pack.
class PackCache {
 public:
  // Errors: invalid_argument (others could have put files into the folder), io_error and not_found
  // (there is no such folder and none can be made), unsupported (the model is not a file).
  static Result<PackCache> open(const std::string& folder, const ModelSource& model);

  // The model's pack, or nullptr if there is none that can be used. invalid_argument: others could
  // have written it.
  Result<std::unique_ptr<PackFile>> find(const ModelSource& model) const;

  // Writes the pack, removes those that it replaces, and those beyond max_bytes. Errors: io_error.
  Result<void> store(std::span<const PackedTensor> tensors,
                     uint64_t max_bytes = kMaxPackFolderBytes) const;

  // Removes a damaged pack.
  void discard(const PackFile& pack) const;

  const std::string& name() const { return name_; }

 private:
  PackCache(PrivateFolder folder, std::string model, const Hash128& key);
  void clean(uint64_t max_bytes) const;

  PrivateFolder folder_;
  std::string prefix_;  // of all packs of models at this path
  Hash128 key_;
  std::string name_;
};

// One thread of low priority that, once a model is loaded, checks the pack it came from or writes
// the one that was missing, and then ends. A check that nobody asks for its verdict is given up
// when the object goes; writing is waited for. Everything passed in must outlive it.
class PackJob {
 public:
  static std::unique_ptr<PackJob> check(std::shared_ptr<const PackCache> cache,
                                        const PackFile& pack);
  static std::unique_ptr<PackJob> write(std::shared_ptr<const PackCache> cache,
                                        std::vector<PackedTensor> tensors);
  PackJob(const PackJob&) = delete;
  PackJob& operator=(const PackJob&) = delete;

  // corrupt_file once the check has found the weights in use damaged.
  Result<void> status() const;
  // The same when the check is over.
  Result<void> verdict() const;

 private:
  enum class State { checking, sound, damaged };

  PackJob(State state, std::function<void(PackJob&, const std::stop_token&)> work);

  void settle(State state);

  std::atomic<State> state_;
  Error error_;  // written before state_ becomes damaged
  std::jthread thread_;
};

}  // namespace octavo
