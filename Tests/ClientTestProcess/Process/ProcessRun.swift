internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Synchronization

/// Sends requests in a process that exits, forks, has no free descriptors, blocks threads or has proxy variables, and
/// prints what happens.
struct ProcessRun {
    private let options: ProcessOptions
    private let session: SessionManager

    init(_ options: ProcessOptions) {
        self.options = options
        let policies = ["127.0.0.1": ServerTrustPolicy.disableEvaluation]
        session = SessionManager(
            configuration: .ephemeral,
            serverTrustPolicyManager: options.hasTrustPolicies
                ? ServerTrustPolicyManager(policies: policies) : nil
        )
    }

    func run() async throws {
        switch options.action {
        case .exit(let cleansUp): try await exitDuringHandshakes(cleansUp: cleansUp)
        case .exitWhileParsing: try await exitWhileParsing()
        case .startWithoutDescriptors: try await startWithoutDescriptors()
        case .fork: try await forkAfterARequest()
        case .send(let minimum):
            session.requestOptions.minimumTLSVersion = minimum.flatMap(TLSVersion.init(rawValue:))
            ClientTestProcess.say("response \(try await outcome())")
        case .download: ClientTestProcess.say("download \(try await download())")
        case .block(let hook, let calls, let count): try await block(hook, calls: calls, until: count)
        }
        ClientTestProcess.say("done")
    }

    /// Returns a request that closes its connection, so that the next request needs a new one.
    private func request() throws -> DataRequest {
        var request = try URLRequest(url: options.url, method: .get)
        request.setValue("close", forHTTPHeaderField: "Connection")
        return session.request(request)
    }

    private func outcome() async throws -> String { Self.description(of: try await request().response()) }

    private static func description(of response: DefaultDataResponse) -> String {
        if let status = response.response?.statusCode { return "status \(status)" }
        return "\(response.error.map { "\($0.transferFailure?.description ?? "\($0)")" } ?? "nothing")"
    }

    private func download() async throws -> String {
        let response = await session.download(options.url).response()
        if let file = response.temporaryURL { try FileManager.default.removeItem(at: file) }
        return response.response.map { "status \($0.statusCode)" } ?? "without a response"
    }

    private func block(_ hook: ProcessOptions.Hook, calls count: Int, until blockedCount: Int) async throws {
        let blockedSession = SessionManager(configuration: .ephemeral)
        let (calls, same) = (BlockedCalls(hook, count), Recorder<String>())
        calls.begin(in: blockedSession, options.url)
        try await calls.wait(until: blockedCount)
        blockedSession.request(options.url).response(queue: DispatchQueue(label: "same")) {
            same.record(Self.description(of: $0))
        }
        ClientTestProcess.say("other \(try await outcome())")
        if count == blockedCount { try await same.wait { !$0.isEmpty } }
        ClientTestProcess.say("same \(same.values.first ?? "waits")")
        ClientTestProcess.say("blocked \(calls.blockedCount)")
        ClientTestProcess.say("ended \(try await calls.release())")
        try await same.wait { !$0.isEmpty }
        ClientTestProcess.say("same \(same.values[0])")
        withExtendedLifetime(blockedSession) {}
    }

    // MARK: exit(3)

    private static let answers = Atomic<Int>(0)

    /// Calls exit(3) during TLS handshakes. Handlers of atexit(3) are called in reverse order, so the handler that is
    /// registered first here keeps the process alive for 200 ms after OpenSSL's own handler.
    private func exitDuringHandshakes(cleansUp: Bool) async throws {
        atexit { usleep(200_000) }
        if cleansUp {
            typealias Initialize = @convention(c) (UInt64, OpaquePointer?) -> CInt
            _ = unsafeBitCast(dlsym(nil, "OPENSSL_init_crypto"), to: Initialize.self)(2, nil)
        }
        await withTaskGroup { group in
            for _ in 0..<16 {
                group.addTask { [self] in
                    while true {
                        _ = try? await request().response()
                        if Self.answers.add(1, ordering: .relaxed).newValue == 32 { exit(0) }
                    }
                }
            }
        }
    }

    /// Calls exit(3) while another thread is in libnl's parsers. The handler that is registered first is called last,
    /// when the destructors of the library follow.
    private func exitWhileParsing() async throws {
        atexit {
            ClientTestProcess.say("exiting")
            let isRefused = (try? LibraryParsers.use {}) == nil
            ClientTestProcess.say(isRefused ? "refused" : "parsed during exit")
        }
        let isParsing = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            try? LibraryParsers.use {
                isParsing.signal()
                usleep(100_000)
                ClientTestProcess.say("parsed")
            }
        }
        // `exit` must be called on another thread than the parsers.
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                isParsing.wait()
                continuation.resume()
            }
        }
        exit(0)
    }

    // MARK: Descriptors

    /// Makes Dispatch open its descriptors. Dispatch ends the process if it cannot open them. A real program has used
    /// Dispatch before it runs out of descriptors.
    private func useDispatch() {
        let isDone = DispatchSemaphore(value: 0)
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { isDone.signal() }
        // The main queue has its own descriptor.
        DispatchQueue.main.async {}
        isDone.wait()
    }

    private func startWithoutDescriptors() async throws {
        useDispatch()
        let limit = try DescriptorLimit.leaving(0)
        let statuses = PathMonitor.shared.statuses(of: .general)
        ClientTestProcess.say("monitor \(PathMonitor.shared.failure?.errno ?? 0)")
        ClientTestProcess.say("without \(try await outcome())")
        try limit.restore()
        ClientTestProcess.say("with \(try await outcome())")
        // The watch began while the monitor had no thread, because there was no descriptor. Now only this wait uses the
        // monitor.
        for await status in statuses where status.reason != .noNetlink { break }
        ClientTestProcess.say("monitor \(PathMonitor.shared.failure?.errno ?? 0)")
    }

    // MARK: fork(2)

    private func forkAfterARequest() async throws {
        _ = PathMonitor.shared.snapshot
        ClientTestProcess.say("parent \(try await outcome())")
        try forkAndWait()
        ClientTestProcess.say("parent \(try await outcome())")
    }

    private func forkAndWait() throws {
        typealias Fork = @convention(c) () -> pid_t
        let child = unsafeBitCast(dlsym(nil, "fork"), to: Fork.self)()
        if child == 0 { runInChild() }
        var status: CInt = 0
        try systemCall("waitpid") { waitpid(child, &status, 0) }
        ClientTestProcess.say("child ended with \(status)")
    }

    private func runInChild() -> Never {
        alarm(20)
        ClientTestProcess.say("child monitor \(PathMonitor.shared.failure.map { "\($0)" } ?? "works")")
        do throws(SystemError) {
            _ = try EventLoop(label: "child")
            ClientTestProcess.say("child loop works")
        } catch {
            ClientTestProcess.say("child loop \(error)")
        }
        let queue = DispatchQueue(label: "handlers")
        do {
            try request().response(queue: queue) { response in
                ClientTestProcess.say("child \(response.error?.transferFailure?.description ?? "no error")")
                _exit(0)
            }
        } catch {
            _exit(2)
        }
        while true { pause() }
    }
}
