#pragma once
#include <lmdb.h>
#include "files.h"
#include "prefetch.h"
