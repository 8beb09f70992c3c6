// Plots as SVG for an HTML page that defines their colours: text is class "t", the lines of a frame
// "grid", and series i is drawn with the class "c" + i % kPlotColours, besides "again" where the
// colours begin anew.
#pragma once

#include <string>
#include <vector>

namespace octavo {

inline constexpr int kPlotColours = 12;

struct PlotLabels {
  std::string title = {}, x = {}, y = {};
  bool log_x = false, log_y = false;  // where that spans more than a factor of 20, else linear
  std::vector<double> x_ticks = {};   // in place of round numbers; log_x from a factor of 3 on
};

struct PlotPoint {
  double x = 0, y = 0;
};

struct PlotRange {
  double x = 0, low = 0, high = 0;
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // by x; any number: thousands are thinned out, extremes stay
  // Of few points: each is a dot, with the range that was measured. May be empty.
  std::vector<PlotRange> ranges = {};
};

// Lines, from y = 0 up unless log_y. `steps`: a value holds until the next.
std::string line_plot(const PlotLabels& labels, const std::vector<PlotSeries>& series,
                      bool steps = false);

// The share of values at or below x, of each series' values.
struct PlotValues {
  std::string name;
  std::vector<double> values;
};
std::string cdf_plot(const PlotLabels& labels, const std::vector<PlotValues>& series);

struct PlotDot {
  std::string name;
  double x = 0, y = 0;
};
// Dots with their names. Where more x and less y are better, the dots that no other beats in both
// are joined, if there are at least three dots.
std::string scatter_plot(const PlotLabels& labels, const std::vector<PlotDot>& dots);

// The dots of that line, by x.
std::vector<PlotPoint> frontier(const std::vector<PlotDot>& dots);

}  // namespace octavo
