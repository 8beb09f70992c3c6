// Fields that no table has: most likely spelling mistakes, which are not to pass in silence.
#pragma once

#include "server/api_error.h"
#include "server/api_fields.h"
#include "server/api_json.h"
#include "server/api_warnings.h"

namespace octavo {

// Warns of each field that is close to one of this endpoint, and of each that another endpoint has.
// The rest is for other programs. With ApiLimits::strict_fields the first of any kind is an error.
// null is as if the field were absent.
ApiResult<void> check_unknown_fields(const BodyFields& body, Endpoint endpoint,
                                     const ApiLimits& limits, ApiWarnings& warnings);

}  // namespace octavo
