internal import CNetwatchFloors
internal import Glibc

/// Sleeps for a number of milliseconds.
package func pause(milliseconds: Int) {
    floors_sleep(Int64(milliseconds) * 1_000_000)
}

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds. All threads share this clock.
package func now() -> Int64 {
    floors_now(CLOCK_MONOTONIC)
}
