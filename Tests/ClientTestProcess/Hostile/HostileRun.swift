internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport

/// Sends requests to a hostile server. Prints the outcome of each request, and the memory that the process has used.
struct HostileRun {
    private let options: HostileOptions
    private let session: SessionManager
    private let queue = DispatchQueue(label: "handlers")

    init(_ options: HostileOptions) {
        self.options = options
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForResource = Double(options.totalTimeout) / 1000
        let policy = ServerTrustPolicy.disableEvaluation
        session = SessionManager(
            configuration: configuration,
            serverTrustPolicyManager: options.trustsAnyCertificate
                ? ServerTrustPolicyManager(policies: ["127.0.0.1": policy]) : nil
        )
        session.requestOptions.allowsNTLMAndNegotiateOverHTTP = true
    }

    func run() async throws {
        _ = await session.request(options.warmUpURL).response()
        let idle = try ResidentMemory.beginMeasuring()
        let limit = try options.spareDescriptors.map(DescriptorLimit.leaving)
        let wastedMemory = [UInt8](repeating: 1, count: options.wastedMemory << 20)
        for number in 0..<options.count {
            let url = options.count > 1 ? "\(options.url)/\(number)" : options.url
            try say("outcome", await outcome(of: url))
        }
        withExtendedLifetime(wastedMemory) {}
        try limit?.restore()
        try say("memory", HostileMemory(idle: idle, peak: ResidentMemory.peak()))
        // Shows whether the session still works.
        try say("after", await outcome(of: options.warmUpURL, .data))
        ClientTestProcess.say("done")
    }

    private func say(_ what: String, _ value: some Encodable) throws {
        ClientTestProcess.say("\(what) \(String(decoding: try JSONEncoder().encode(value), as: UTF8.self))")
    }

    // MARK: One request

    private func outcome(of url: String, _ kind: HostileOptions.Kind? = nil) async throws -> HostileOutcome {
        let request = try make(url, kind ?? options.kind)
        if options.hasCredential { request.authenticate(user: "user", password: "password") }
        let endings = Lock([0, 0, 0])
        let count: @Sendable (Int) -> Void = { place in endings.withLock { $0[place] += 1 } }
        for place in 0...1 {
            (request as? DataRequest)?.response(queue: queue) { _ in count(place) }
            (request as? DownloadRequest)?.response(queue: queue) { _ in count(place) }
        }
        var outcome = await end(of: request)
        count(2)
        await withCheckedContinuation { done in queue.async { done.resume() } }
        outcome.endings = endings.withLock { $0 }
        return outcome
    }

    private func make(_ url: String, _ kind: HostileOptions.Kind) throws -> Request {
        var request = try URLRequest(url: url, method: .get)
        request.setValue(options.acceptedEncodings, forHTTPHeaderField: "Accept-Encoding")
        switch kind {
        case .data: return session.request(request)
        case .limited(let bytes):
            return session.transfer(
                request,
                policy: .singleTransfer(
                    maximumResponseBytes: bytes,
                    totalTimeout: .milliseconds(options.totalTimeout),
                    allowsConnectionReuse: true
                )
            )
        case .download: return session.download(request)
        case .slowStream: return session.request(request).stream { _ in usleep(1000) }
        case .upload(let bytes):
            return session.upload(Data(repeating: 1, count: bytes), to: url, method: .post)
        }
    }

    private func end(of request: Request) async -> HostileOutcome {
        var outcome = HostileOutcome(endings: [])
        var error: (any Error)?
        if let request = request as? DataRequest {
            let response = await request.response()
            (error, outcome.byteCount) = (response.error, response.data?.count)
        }
        if let request = request as? DownloadRequest {
            let response = await request.response()
            error = response.error
            let path = response.temporaryURL?.path
            outcome.byteCount = path.flatMap {
                (try? FileManager.default.attributesOfItem(atPath: $0)[.size]) as? Int
            }
            path.map { _ = unlink($0) }
        }
        outcome.status = request.response?.statusCode
        outcome.error = error.map(Self.word(of:))
        outcome.transferCode = error?.transferFailure?.code
        outcome.osErrno = error?.transferFailure?.osErrno
        outcome.phase = error?.transferFailure?.phase.rawValue
        outcome.message = error?.transferFailure?.message ?? error.map { "\($0)".prefix(300).description }
        return outcome
    }

    private static func word(of error: any Error) -> String {
        if let error = error as? URLError { return "URLError \(error.code.rawValue)" }
        return String("\(type(of: error)) \(error)".prefix(200))
    }
}

/// Measures the resident memory of this process with `/proc/self/status` (`proc_pid_status(5)`).
enum ResidentMemory {
    /// Resets the kernel's record of the peak to the current size. Returns the current size in KiB.
    static func beginMeasuring() throws -> Int {
        let descriptor = try systemCall("open clear_refs") {
            open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
        }
        defer { close(descriptor) }
        // Writing 5 resets the peak (`proc_pid_clear_refs(5)`).
        try systemCall("write clear_refs") { write(descriptor, "5", 1) }
        return try field("VmRSS:")
    }

    static func peak() throws -> Int { try field("VmHWM:") }

    private static func field(_ name: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
        guard let number = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first else {
            throw SystemError(call: "read \(name)", errno: ENOENT)
        }
        return Int(number) ?? 0
    }
}
