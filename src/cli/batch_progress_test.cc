#include "cli/batch_progress.h"

#include <gtest/gtest.h>

namespace octavo::cli {
namespace {

TEST(BatchProgress, SaysWhatIsDoneHowFastAndWhatIsLeft) {
  // 40 lines were there already; 60 of this run took 120 s, so that the other 1900 take 3800.
  const BatchFigures figures{.done = 100,
                             .failed = 2,
                             .first_error = {},
                             .first_failed_line = 0,
                             .computed = 60,
                             .tokens = 6000};
  EXPECT_EQ(batch_progress_text(figures, 2000, 120),
            "100 of 2000 lines, 50.0 tokens/s, 1:03:20 left");
  EXPECT_EQ(batch_progress_text(figures, {}, 120), "100 lines, 50.0 tokens/s");
  EXPECT_EQ(batch_progress_text({}, 7, 3), "0 of 7 lines, 0.0 tokens/s");
  EXPECT_EQ(batch_summary(figures, 120),
            "[60 lines, 2 failed; 6000 tokens in 120.00 s, 50.0 tokens/s]");
  // A file that grew while it was read.
  EXPECT_EQ(batch_progress_text(figures, 90, 120), "100 of 90 lines, 50.0 tokens/s, 0:00:00 left");
}

}  // namespace
}  // namespace octavo::cli
