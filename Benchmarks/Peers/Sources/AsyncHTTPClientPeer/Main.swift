import AsyncHTTPClient
import Glibc
import NIOCore

/// Measures async-http-client and prints one figure per line, like `ClientBenchmark`.
///
/// | arguments | measures |
/// |---|---|
/// | `requests CLIENTS SECONDS URL` | requests with small bodies, CLIENTS in flight |
/// | `download URL` | a body that is downloaded and discarded |
/// | `upload FILE URL` | a file that is uploaded |
/// | `slow COUNT URL` | COUNT responses that are all open at once |
@main
enum Main {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        switch (words.first, words.count) {
        case ("requests", 4): try await requests(Int(words[1])!, Double(words[2])!, words[3])
        case ("download", 2): try await download(words[1])
        case ("upload", 3): try await upload(words[1], words[2])
        case ("slow", 3): try await slow(Int(words[1])!, words[2])
        default: exit(2)
        }
    }

    /// - Parameter connections: The maximum number of connections to one server. The library's default is 8.
    private static func client(connections: Int) -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    // MARK: Small bodies

    private static func requests(_ clients: Int, _ seconds: Double, _ url: String) async throws {
        let client = client(connections: clients)
        let warmed = try await load(client, url, clients, until: now() + 250_000_000)
        let (allocated, switched) = (allocations(), contextSwitches())
        let (start, used) = (now(), processorSeconds())
        let count = try await load(client, url, clients, until: start + Int64(seconds * 1e9))
        print("rate", Double(count) / (Double(now() - start) / 1e9))
        print("cpu", (processorSeconds() - used) / Double(count) * 1e6)
        print("switches", Double(contextSwitches() - switched) / Double(count))
        print("requests", warmed + count)
        if allocated >= 0 { print("allocations", Double(allocations() - allocated) / Double(count)) }
        try await client.shutdown()
    }

    /// Requests a URL, with `clients` requests in flight, until the deadline. Returns the number of requests. Any
    /// failure is thrown or terminates the process.
    private static func load(
        _ client: HTTPClient,
        _ url: String,
        _ clients: Int,
        until deadline: Int64
    ) async throws -> Int {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<clients {
                group.addTask {
                    var count = 0
                    while now() < deadline {
                        try await get(client, url)
                        count += 1
                    }
                    return count
                }
            }
            return try await group.reduce(0, +)
        }
    }

    private static func get(_ client: HTTPClient, _ url: String) async throws {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(60))
        let body = try await response.body.collect(upTo: 1 << 20)
        guard response.status == .ok, body.readableBytes > 0 else { fatalError("\(response)") }
    }

    // MARK: Large bodies

    private static func download(_ url: String) async throws {
        let client = client(connections: 1)
        let (start, used) = (now(), processorSeconds())
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .minutes(10))
        var bytes = 0
        for try await part in response.body { bytes += part.readableBytes }
        report(bytes, since: start, used)
        try await client.shutdown()
    }

    private static func upload(_ path: String, _ url: String) async throws {
        let file = try FileParts(path)
        let client = client(connections: 1)
        let (start, used) = (now(), processorSeconds())
        var request = HTTPClientRequest(url: url)
        request.method = .PUT
        request.body = .stream(file, length: .known(Int64(file.length)))
        let response = try await client.execute(request, timeout: .minutes(10))
        guard response.status == .ok else { fatalError("\(response)") }
        report(file.length, since: start, used)
        try await client.shutdown()
    }

    /// Prints the figures of a transfer.
    ///
    /// - Parameters:
    ///   - start: The time at its start, as returned by `now()`.
    ///   - used: The CPU time of the process at its start.
    private static func report(_ bytes: Int, since start: Int64, _ used: Double) {
        let mebibytes = Double(bytes) / 1_048_576
        print("throughput", mebibytes / (Double(now() - start) / 1e9))
        print("cpu", (processorSeconds() - used) * 1e3)
        print("memory", peakMemory())
    }

    // MARK: Many at once

    private static func slow(_ count: Int, _ url: String) async throws {
        let client = client(connections: count)
        let (start, used) = (now(), processorSeconds())
        let answered = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask { (try? await get(client, url)) != nil }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        print("answered", answered)
        print("seconds", Double(now() - start) / 1e9)
        print("cpu", (processorSeconds() - used) / Double(count) * 1e6)
        print("memory", peakMemory())
        try await client.shutdown()
    }
}
