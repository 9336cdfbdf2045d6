import Glibc

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds.
func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Returns the CPU time of all threads of this process, in seconds.
func processorSeconds() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_utime.seconds + usage.ru_stime.seconds
}

/// Returns the number of context switches of all threads of this process so far.
func contextSwitches() -> Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_nvcsw + usage.ru_nivcsw
}

/// Returns the number of allocations of this process so far, if `Floors/allocations.c` is preloaded; otherwise -1.
func allocations() -> Int64 {
    typealias Count = @convention(c) () -> Int64
    guard let function = dlsym(dlopen(nil, RTLD_NOW), "floors_allocation_count") else { return -1 }
    return unsafeBitCast(function, to: Count.self)()
}

extension timeval {
    fileprivate var seconds: Double { Double(tv_sec) + Double(tv_usec) / 1e6 }
}

/// Returns the peak resident memory of this process in KiB (`VmHWM`).
func peakMemory() -> Int {
    guard let file = fopen("/proc/self/status", "re") else { fatalError("no /proc/self/status") }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, CInt(line.count), file) != nil {
        let bytes = line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
        let words = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        if words.first == "VmHWM:" { return Int(words[1])! }
    }
    fatalError("no VmHWM in /proc/self/status")
}
