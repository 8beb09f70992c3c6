// Rows of the option table (cli/options.cc): where results go, and settings.
#pragma once

#include <array>

#include "cli/option_rows.h"

namespace octavo::cli::rows {

inline constexpr std::array kResultRows = {
    no_variable(shown_default(text("label", "NAME", "of this run, in tables", V, kShown),
                              "the server's address")),
    no_variable(text("output", "FILE", "keep the result as JSON", M | V | D | Y, kShown)),
    no_variable(shown_default(text("output", "FILE", "where to keep the result as JSON", N, kShown),
                              "where early_exit finds it: in octavo/packs of the cache folder")),
    no_variable(
        shown_default(text("html", "FILE", "a page of plots; none: no page", M | V | D | Y, kShown),
                      "octavo-bench-WHAT.html; of throughput, speculative, serve and diff, and "
                      "with --json: none")),
    text("config", "FILE",
         "settings in TOML, named as the flags are, with _ or -: top_p = 0.9; flags and the "
         "environment win",
         G | X | C | P | B, kSettings),
};

}  // namespace octavo::cli::rows
