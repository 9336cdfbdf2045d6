internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// A running transfer: everything that the callbacks of its easy handle use.
///
/// A transfer is confined to the engine's thread. Its ``TransferHandle`` does not retain it. So the code that adds the
/// handle to a multi handle must retain the transfer until it has removed the handle.
final class Transfer {
    /// The reason why netwatch made libcurl stop. Usually a callback sets it.
    enum Stop {
        case headTooLarge
        case ambiguousLength
        /// The body has a transfer coding that the request did not offer. The value is the `Transfer-Encoding`.
        case unsupportedTransferCoding(String)
        case switchedProtocol
        case bodyTooLarge
        case bodyExpands
        case undecodable(ContentDecoder.Failure)
        case sentTooOften
        case bodyFailed(TransferBodyReader.Fault)
        case resendForbidden
        /// The response is not HTTP. The value shows its first bytes, escaped.
        case notHTTP(String)
        /// The watchdog shut down the connection, because the server sent this number of bytes without useful data.
        case abortedByWatchdog(UInt64)
        /// The server presented other certificates than those that the program had accepted, again and again.
        case certificatesVary
    }

    /// The facts that the transfer has revealed about its host.
    struct Milestones: OptionSet {
        let rawValue: Int

        /// A connection is ready, and the request is being sent over it.
        static let connected = Milestones(rawValue: 1)
        /// The response has begun over HTTP/2, whose connections carry many transfers at a time.
        static let multiplexed = Milestones(rawValue: 2)
        /// The response has begun, over any version of HTTP.
        static let responded = Milestones(rawValue: 4)
    }

    let id: TransferID
    let target: TransferTarget
    let reporter: TransferReporter
    /// The multi handle that runs the transfer. It retains the transfer until the transfer ends.
    unowned let context: any TransferContext

    let handle: TransferHandle
    var bodyReader: TransferBodyReader
    var head: HeadParser
    /// The decoder of the current response's body; `nil` if the body is not decoded.
    private(set) var decoder: ContentDecoder?
    /// The number of bytes of the current response's body that were accepted, before decoding. libcurl's own number
    /// includes bytes that it keeps during a pause.
    var acceptedBodyBytes: Int64 = 0
    /// The number of bytes at the beginning of libcurl's next delivery that have been decoded already.
    var decodedCount = 0
    var flow: TransferFlow
    var sending = SendState()
    var output: TransferOutput
    var times: TransferTimes
    var deadlines: TransferDeadlines
    var idleTracker = IdleTracker()
    var stuckTracker = IdleTracker()
    var stop: Stop?
    var isFinished = false
    /// Whether the transfer was ended because the response did not begin within ``TransferRequest/responseTimeout``.
    var isResponseLate = false
    /// The trust evaluator of the most recent TLS connection that libcurl made for this transfer; `nil` if there was
    /// none.
    var evaluator: TrustEvaluator?
    /// The server that the program has accepted for this transfer.
    var acceptedServer: PresentedTrust?
    /// The number of questions to the program; see ``maximumQuestionCount``.
    var questionCount = 0
    /// The connection that was made for the transfer; `nil` after libcurl has taken it over.
    private var connection: TCPSocket?
    /// Whether libcurl has opened a connection for the transfer and has not sent the request over it yet.
    var hasNewConnection = false
    /// The last unix socket that was created for the transfer.
    var unixSocket: CInt?
    /// The error that occurred when the unix socket was created.
    var socketFailure: SystemError?

    /// Creates a transfer and sets all options of its handle, which may be the handle of an earlier transfer.
    ///
    /// - Parameters:
    ///   - target: The request.
    ///   - deadlines: Its deadlines.
    ///   - paused: The directions that are paused from the start.
    ///   - connection: The connection to use; `nil` to reuse an open one.
    ///   - context: The multi handle that will run the transfer.
    /// - Throws: ``TransferFailure`` if libcurl rejects an option.
    init(
        id: TransferID,
        target: TransferTarget,
        deadlines: TransferDeadlines,
        reporter: TransferReporter,
        paused: TransferPause,
        connection: TCPSocket?,
        context: any TransferContext
    ) throws(TransferFailure) {
        let shape = TransferHandle.Shape(target)
        let usedHandle = shape.flatMap(context.takeHandle)
        if let usedHandle {
            handle = usedHandle
        } else {
            handle = try TransferHandle(for: target, shape: shape, usesHTTP1: context.usesHTTP1)
        }
        self.id = id
        self.reporter = reporter
        self.connection = connection
        self.context = context
        self.target = target
        self.deadlines = deadlines
        bodyReader = TransferBodyReader(target.request.body)
        head = HeadParser(method: target.request.method)
        flow = TransferFlow(paused: paused)
        output = TransferOutput(requestBodyLength: bodyReader.length)
        times = TransferTimes(added: reporter.elapsed)
        if usedHandle == nil { try setCallbacks() }
        try handle.prepare(for: self)
        // libcurl may resend over a reused connection. `TransferRequest.allowsConnectionReuse` describes this.
        try requireNewConnection(connection != nil || !request.allowsConnectionReuse)
    }

    /// Prepares the transfer so that its handle can be added again.
    ///
    /// - Parameters:
    ///   - connection: The connection to use; `nil` to reuse an open one, or for a unix socket, to which libcurl itself
    ///     makes a new connection.
    ///   - deadlines: The deadlines from now on.
    ///   - paused: The directions that are paused now.
    func addAgain(
        over connection: TCPSocket?,
        _ deadlines: TransferDeadlines,
        paused: TransferPause
    ) throws(TransferFailure) {
        self.connection = connection
        self.deadlines = deadlines
        hasNewConnection = false
        flow.restart(paused: paused)
        sending.addAgain()
        times.addAgain(at: reporter.elapsed)
        idleTracker = IdleTracker()
        stuckTracker = IdleTracker()
        try requireNewConnection(connection != nil || request.unixSocketPath != nil)
        try easy.set(CURLOPT_FORBID_REUSE, 0)
        // libcurl forgets the required version when the handle is added again.
        if sending.requiresHTTP1 { try easy.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) }
        // If the request allows connection reuse, the log was not read until now.
        if url.isSecure { try readVerboseLog() }
    }

    var request: TransferRequest { _read { yield target.request } }

    var url: CurlURL { target.url }

    /// The origin of the connections that libcurl may use for the transfer: that of the URL, and the path of the unix
    /// socket.
    var connectionOrigin: String {
        request.unixSocketPath.map { "\($0) \(url.origin)" } ?? url.origin
    }

    /// Sets whether libcurl must use the new connection. Without this option, it might reuse an idle connection and
    /// leave the new connection unused.
    private func requireNewConnection(_ isRequired: Bool) throws(TransferFailure) {
        try easy.set(CURLOPT_FRESH_CONNECT, isRequired ? 1 : 0)
    }

    /// Returns whether the transfer can be added again with a new connection after libcurl has ended it with an error.
    /// It cannot if its request was sent and must not be sent twice. This reason is then recorded as ``stop``.
    func mayReconnect(after code: CURLcode) -> Bool {
        let isExpected = code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK
        guard isExpected, sending.lacksConnection, stop == nil else { return false }
        if !maySend { stop = .resendForbidden }
        return stop == nil
    }

    /// Records that the server has received nothing over the last connection. The request therefore counts as not sent
    /// there; see ``maximumSendCount``.
    func markUnsent() {
        sending.markUnsent(wasSent: isReady, bytes: currentBytesSent)
        times.requestWasNotSent()
    }

    /// Whether the request may be sent now. This is the case if one of the following is true:
    ///
    /// - It is sent for the first time.
    /// - The server has asked for it again: it has responded, or it requires HTTP/1.1.
    /// - The request may arrive twice.
    var maySend: Bool { !isReady || head.hasBegun || request.mayBeResent || sending.isRefusedOverHTTP2 }

    /// Whether the transfer can begin again, because the server has received nothing of it.
    ///
    /// - Parameter acknowledged: The number of bytes of the connection that the server's kernel has acknowledged.
    func mayRestart(acknowledged: UInt64) -> Bool {
        !head.hasBegun && maySend && bodyReader.mayRestart && acknowledged <= sending.offset ?? .max
    }

    /// Records that the watchdog has shut down the connection; see ``Stop/abortedByWatchdog(_:)``.
    func abort(afterUselessBytes count: UInt64) {
        stop = stop ?? .abortedByWatchdog(count)
    }

    /// Makes libcurl close the connection when the transfer is removed. Without this option, libcurl keeps an HTTP/2
    /// connection. A connection that other transfers use stays open.
    func closeConnectionAfterUse() {
        try? easy.set(CURLOPT_FORBID_REUSE, 1)
    }

    /// Returns the connection that was made for the transfer, at the first call. Returns `nil` at later calls, and
    /// records that the transfer lacks a connection.
    func takeConnection() -> TCPSocket? {
        defer { connection = nil }
        if connection == nil { sending.loseConnection(bytes: currentBytesSent) }
        return connection
    }

    /// Prepares to decode the body of a response, if it is encoded and the caller has requested that.
    func prepareDecoder(for head: TransferHead) {
        let codings = target.decodesBody ? head.fields.values(of: "Content-Encoding") : []
        decoder = codings.isEmpty ? nil : ContentDecoder(codings)
        decodedCount = 0
    }

    // MARK: Pausing

    /// The directions that the caller has paused.
    var paused: TransferPause { flow.paused }

    /// Pauses directions of the transfer, in addition to those that are already paused. If the result is not
    /// `CURLE_OK`, the caller must end the transfer.
    ///
    /// libcurl pauses immediately while it is sending or receiving, but ignores a pause that was set earlier. The
    /// callbacks therefore check ``paused`` themselves.
    ///
    /// Must not be called from a callback of libcurl. The same holds for the functions that resume.
    func pause(_ directions: TransferPause) -> CURLcode {
        flow.pause(directions)
        return applyPause()
    }

    /// Stops receiving the body for the rest of this turn. May be called from a callback, unlike ``pause(_:)``.
    ///
    /// Data that libcurl has already read is still delivered, because libcurl would have to keep it.
    func stopReceiving() {
        flow.stopReceivingForTurn()
    }

    /// Resumes the directions that the caller has paused.
    func resume() -> CURLcode {
        flow.resume() ? applyPause() : CURLE_OK
    }

    func sourceIsReady() -> CURLcode {
        flow.sourceIsReady() ? applyPause() : CURLE_OK
    }

    /// Resumes receiving after ``ReceiveLimiter`` has paused it.
    func resumeReceiving() -> CURLcode {
        flow.resumeReceiving() ? applyPause() : CURLE_OK
    }

    private func applyPause() -> CURLcode {
        let code = curl_easy_pause(easy.rawValue, flow.directions.mask)
        // libcurl returns this error if there is no connection yet. Then there is nothing to pause.
        return code == CURLE_BAD_FUNCTION_ARGUMENT ? CURLE_OK : code
    }

    // MARK: Handles

    var easy: EasyHandle { _read { yield handle.easy } }

    /// Returns the transfer that uses an easy handle.
    static func of(_ easy: UnsafeMutableRawPointer) -> Transfer? {
        netwatch_easy_get_private(easy).flatMap { TransferHandle.at($0).transfer }
    }

    /// Returns the transfer that uses the handle to which a callback's context points.
    static func at(_ context: UnsafeMutableRawPointer) -> Transfer {
        guard let transfer = TransferHandle.at(context).transfer else {
            preconditionFailure("a callback was called for a handle that no transfer uses")
        }
        return transfer
    }
}
