#pragma once

#include "base/quote.h"
