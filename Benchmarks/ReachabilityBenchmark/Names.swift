internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc
internal import NetwatchEventLoop
internal import NetworkReachability

/// Measures lookups of names that the name server answers, while lookups of other names get no answer (silent names).
///
/// Arguments: the number of silent names; the number of other names, which are looked up one after another.
enum Resolving: Measurement {
    static let name = "resolving"

    static func run(_ arguments: [String]) throws {
        let arguments = arguments.compactMap { Int($0) }
        try BenchmarkNameServer.start()
        let resolver = NameResolver()
        _ = resolver.latency(of: "warm-up.example")
        let before = residentMemory()
        for number in 0..<arguments[0] { resolver.resolve("silent\(number).example") { _ in } }
        pause(milliseconds: 500)
        printFigure("resolver.threads", Double(resolver.snapshot().threads))
        printFigure("resolver.memory", (residentMemory() - before) / 1024)
        let latencies = (0..<arguments[1]).map { resolver.latency(of: "healthy\($0).example") }
        printFigures("healthy.", latencies: latencies)
    }
}

/// Measures the lookups and the CPU time of a monitor that watches many names whose records do not change.
///
/// Arguments: the number of names; the number of seconds.
enum Following: Measurement {
    static let name = "following"

    static func run(_ arguments: [String]) throws {
        let arguments = arguments.compactMap { Int($0) }
        try BenchmarkNameServer.start()
        var configuration = PathMonitor.Configuration()
        // Enough to refresh 10,000 names every 30 s. The default would need half an hour for their first lookups.
        configuration.nameLookupsPerSecond = 340
        let monitor = PathMonitor(configuration: configuration)
        let hosts = (0..<arguments[0]).map { NetworkHost("healthy\($0).example")! }
        let watches = hosts.map { monitor.watch(.host($0)) { _ in } }
        while monitor.statistics.nameLookups < hosts.count || NameResolver.shared.snapshot().waiting > 0 {
            pause(milliseconds: 10)
        }
        pause(milliseconds: 2000)
        let (lookups, cpu) = (monitor.statistics.nameLookups, processCPU())
        pause(milliseconds: 1000 * arguments[1])
        printFigure("following.lookups", Double(monitor.statistics.nameLookups - lookups))
        printFigure("following.cpu", (processCPU() - cpu) * 1e3)
        withExtendedLifetime(watches) {}
    }

    /// Returns the CPU seconds of this process, without its name server.
    private static func processCPU() -> Double {
        var usage = rusage()
        getrusage(CInt(RUSAGE_SELF.rawValue), &usage)
        let times = [usage.ru_utime, usage.ru_stime]
        return times.reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 } - BenchmarkNameServer.cpu
    }
}

extension NameResolver {
    /// Looks up a name and waits. Returns the nanoseconds until the answer.
    fileprivate func latency(of name: String) -> Int64 {
        let start = now()
        let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
        nonisolated(unsafe) let answered = semaphore
        resolve(name) { outcome in
            guard case .success = outcome else { fatalError("\(name): \(outcome)") }
            sem_post(answered)
        }
        sem_wait(semaphore)
        defer { semaphore.deallocate() }
        return now() - start
    }
}

/// A name server on 127.0.0.1. It answers A queries with 10.0.0.1, and AAAA queries without a record. It does not
/// answer queries for names that begin with `s`.
enum BenchmarkNameServer {
    private static let threadName = "name-server"

    /// Starts the server and mounts a `resolv.conf` that names it. The process must be in separate network and mount
    /// namespaces, because it replaces `/etc/resolv.conf`.
    static func start() throws(SystemError) {
        let file = "/tmp/netwatch-benchmark-\(getpid())"
        let command =
            "echo nameserver 127.0.0.1 >\(file) && mount --bind \(file) /etc/resolv.conf && rm \(file)"
        guard system(command) == 0 else { fatalError("`\(command)` failed") }
        let socket = try systemCall("socket") { Glibc.socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0) }
        let address = IPAddress("127.0.0.1")!
        try systemCall("bind") { address.withSocketAddress(port: 53) { bind(socket, $0, $1) } }
        try startDetachedThread(named: threadName) { serve(socket) }
    }

    /// The CPU time in seconds that the thread of the server has used.
    static var cpu: Double {
        Usage(of: directory(ofThread: threadName)).cpu
    }

    private static func serve(_ socket: CInt) {
        var bytes = [UInt8](repeating: 0, count: 512)
        while true {
            var sender = sockaddr()
            var size = socklen_t(MemoryLayout<sockaddr>.size)
            let count = recvfrom(socket, &bytes, bytes.count, 0, &sender, &size)
            guard count > 16, bytes[13] != UInt8(ascii: "s") else { continue }
            let response = response(to: Array(bytes[..<count]))
            sendto(socket, response, response.count, 0, &sender, size)
        }
    }

    /// Builds the answer to a query (RFC 1035 §4.1): the query's header and question and, for an A query, a record
    /// whose name is a pointer to the question.
    private static func response(to query: [UInt8]) -> [UInt8] {
        let isAddress = query[query.count - 3] == 1
        let header = query[..<2] + [0x81, 0x80, 0, 1, 0, isAddress ? 1 : 0, 0, 0, 0, 0]
        let record: [UInt8] = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 0, 0, 1]
        return header + query[12...] + (isAddress ? record : [])
    }
}
