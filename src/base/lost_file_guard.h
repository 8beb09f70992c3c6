// A mapped file that another program shortens, or that the disk fails to deliver, is noticed only
// by a signal, SIGBUS, at the access. This turns the signal into an ordinary end of the program: a
// message that names the file, and an exit code.
//
// A signal handler can reach nothing but globals: the list of mapped ranges is one for the process
// (docs/adr/0004-pack-file.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace octavo {

// For main(): from now on the loss of a registered range prints one line on standard error, of the
// form of all errors, and ends the program with io_error's exit code. Other causes of SIGBUS keep
// what they did before.
void end_program_when_mapped_file_is_lost();

// A range of memory that comes from a file, for as long as the object exists. A few dozen can be
// registered at once; one too many is left out, and its loss ends the program without a message.
class MappedRange {
 public:
  MappedRange() = default;
  MappedRange(std::span<const std::byte> range, const std::string& path);
  MappedRange(MappedRange&& other) noexcept;
  MappedRange& operator=(MappedRange&& other) noexcept;
  ~MappedRange();

 private:
  int slot_ = -1;
};

}  // namespace octavo
