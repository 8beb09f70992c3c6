#include "server/metric_buckets.h"

namespace octavo::buckets {

Boundaries first_token() {
  return {.0005, .001, .002, .003, .005, .0075, .01, .015, .02, .03, .04, .06, .08, .1,  .15, .2,
          .25,   .35,  .5,   .75,  1,    1.5,   2.5, 5,    7.5, 10,  20,  40,  80,  160, 640, 2560};
}

Boundaries inter_token() {
  return {.0002, .0005, .001, .0015, .002, .003, .004, .005, .006, .008, .01, .015,
          .02,   .025,  .03,  .04,   .05,  .06,  .075, .1,   .15,  .2,   .3,  .4,
          .5,    .75,   1,    2.5,   5,    7.5,  10,   20,   40,   80};
}

Boundaries request() {
  return {.001, .002, .005, .01, .02, .05, .1, .2, .3,  .5,  .8,  1,   1.5,  2,   2.5,
          5,    10,   15,   20,  30,  40,  50, 60, 120, 240, 480, 960, 1920, 7680};
}

Boundaries step() {
  return {.0001, .0002, .0005, .001, .002, .003, .005, .0075, .01, .015, .02, .03,
          .05,   .075,  .1,    .15,  .2,   .3,   .5,   .75,   1,   2,    5,   10};
}

Boundaries http() { return {.001, .005, .01, .05, .1, .5, 1, 5, 10, 60}; }

Boundaries iteration_tokens() {
  return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
}

Boundaries choices() { return {1, 2, 5, 10, 20}; }
Boundaries preemptions() { return {0, 1, 2, 3, 4, 5, 10, 20}; }

Boundaries tokens_up_to(int most) {
  Boundaries out = {1};
  for (double ten = 1;; ten *= 10)
    for (const double digit : {2.0, 5.0, 10.0}) {
      if (digit * ten > most) return out;
      out.push_back(digit * ten);
    }
}

}  // namespace octavo::buckets
