// The text of one answer as a stream of bytes that is never taken back: a possible beginning of a
// stop string is held until it is clear what it is. Concatenated, the parts are the whole text,
// however the pieces were cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/stop_strings.h"

namespace octavo {

class TextStream {
 public:
  // If include_stop, the text ends with the stop string, else before it. `stops` outlives this.
  TextStream(const StopStrings& stops, bool include_stop)
      : stops_(stops), include_stop_(include_stop), state_(stops.start()) {}

  // Takes new text and returns what may be shown. The stop string that is complete first ends the
  // stream; of two that end at the same byte, the longer. REQUIRES: !stopped().
  std::string push(std::string_view text);

  // Shows text without looking for stop strings in it.
  std::string pass(std::string_view text);

  // What was held back, when nothing more comes.
  std::string finish();

  const std::optional<std::string>& stopped() const { return stopped_; }

 private:
  size_t held_back() const;

  const StopStrings& stops_;
  bool include_stop_;
  StopStrings::State state_;
  std::string pending_;
  std::optional<std::string> stopped_;
};

}  // namespace octavo
