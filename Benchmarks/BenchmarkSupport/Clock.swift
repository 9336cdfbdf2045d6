internal import CNetwatchFloors
internal import Glibc

/// Milliseconds to sleep.
package func pause(milliseconds: Int) {
    floors_sleep(Int64(milliseconds) * 1_000_000)
}

/// A moment of `CLOCK_MONOTONIC` in nanoseconds, the same on every thread.
package func now() -> Int64 {
    floors_now(CLOCK_MONOTONIC)
}
