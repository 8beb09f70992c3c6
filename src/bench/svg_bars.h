// Bars from zero with the range of their rounds, as SVG for the page of svg_plot.h.
#pragma once

#include <string>
#include <vector>

namespace octavo {

struct PlotBar {
  std::string name, text;    // text: the value as it is shown
  double value = 0;          // at least 0
  double low = 0, high = 0;  // of the rounds; equal: there is nothing to show
};

// One below the other. Nothing without a bar that is above 0.
std::string bar_plot(const std::string& title, const std::vector<PlotBar>& bars);

}  // namespace octavo
