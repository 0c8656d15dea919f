#pragma once
#include <lmdb.h>
#include "prefetch.h"
