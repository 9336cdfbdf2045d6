// For posix_spawn_file_actions_addclosefrom_np(3).
#define _GNU_SOURCE

#include <spawn.h>

#include "CNetwatchTestSupport.h"

int netwatch_close_inherited(void *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
