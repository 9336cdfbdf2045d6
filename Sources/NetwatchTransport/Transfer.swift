internal import CNetwatchCurl
internal import NetwatchEventLoop

/// One transfer under way: an easy handle with everything its callbacks touch.
///
/// Lives on the engine's thread. libcurl holds an unretained pointer to it, so whoever adds its handle to a
/// multi handle keeps the transfer until the handle was removed again.
final class Transfer {
    /// Why a callback of ours told libcurl to stop.
    private enum Stop {
        case unbound(SystemError)
        case headTooLarge
        case bodyTooLarge
    }

    let id: TransferID
    let isSecure: Bool
    let bodyCount: Int
    private let maximumBodyBytes: Int?
    private let binding: SocketBinding?
    private let deliver: @Sendable (TransferEvent) -> Void

    // Fields go in this order: the handle before what it points to.
    private let easy: EasyHandle
    private let headers: StringList
    private let resolved: StringList
    private let message = MessageBuffer()

    private var head = HeadParser()
    private var bodyBytes = 0
    private var stop: Stop?

    /// - Parameter target: The request with its timeouts reduced by the time that has passed already.
    /// - Throws: ``TransferFailure`` when libcurl refuses an option.
    init(
        id: TransferID,
        target: TransferTarget,
        deliver: @escaping @Sendable (TransferEvent) -> Void
    ) throws(TransferFailure) {
        guard let easy = EasyHandle() else { throw .refused(CURLE_OUT_OF_MEMORY, "out of memory") }
        self.id = id
        isSecure = target.url.scheme == "https"
        bodyCount = target.request.body?.count ?? 0
        maximumBodyBytes = target.request.maximumResponseBodyBytes
        binding = target.request.binding
        self.deliver = deliver
        self.easy = easy
        headers = target.request.headerList()
        resolved = target.resolveList()
        try self.easy.apply(target.request)
        try self.easy.set(CURLOPT_HTTPHEADER, pointer: headers.rawValue)
        if let entry = resolved.rawValue { try self.easy.set(CURLOPT_RESOLVE, pointer: entry) }
        try setCallbacks()
    }

    var handle: UnsafeMutableRawPointer { easy.rawValue }

    /// The transfer a handle belongs to.
    static func of(_ handle: UnsafeMutableRawPointer) -> Transfer? {
        guard let pointer = netwatch_easy_get_private(handle) else { return nil }
        return Unmanaged<Transfer>.fromOpaque(pointer).takeUnretainedValue()
    }

    private func setCallbacks() throws(TransferFailure) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        try easy.set(CURLOPT_PRIVATE, pointer: context)
        try easy.set(CURLOPT_ERRORBUFFER, pointer: message.rawValue)
        try easy.set(CURLOPT_HEADERDATA, pointer: context)
        try easy.set(CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            Transfer.receive(bytes, size * count, context) { $0.receivedHeader($1) }
        }
        try easy.set(CURLOPT_WRITEDATA, pointer: context)
        try easy.set(CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            Transfer.receive(bytes, size * count, context) { $0.receivedBody($1) }
        }
        guard binding != nil else { return }
        try easy.set(CURLOPT_SOCKOPTDATA, pointer: context)
        // CURLOPT_INTERFACE would do for the interface or for the source address, not for both.
        try easy.setSocketCallback { context, socket, _ in
            let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
            return transfer.bind(socket) ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ERROR
        }
    }

    private func bind(_ socket: CInt) -> Bool {
        do throws(SystemError) {
            try binding?.apply(to: socket)
            return true
        } catch {
            stop = .unbound(error)
            return false
        }
    }

    /// Returns the count to go on, and 0 to make libcurl end the transfer.
    private static func receive(
        _ bytes: UnsafeMutablePointer<CChar>?,
        _ count: Int,
        _ context: UnsafeMutableRawPointer?,
        _ handle: (Transfer, UnsafeRawBufferPointer) -> Void
    ) -> Int {
        let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
        handle(transfer, UnsafeRawBufferPointer(start: bytes, count: count))
        return transfer.stop == nil ? count : 0
    }

    private func receivedHeader(_ line: UnsafeRawBufferPointer) {
        switch head.consume(line) {
        case .more: break
        case .head(let head): deliver(.head(head))
        case .tooLarge: stop = .headTooLarge
        }
    }

    private func receivedBody(_ bytes: UnsafeRawBufferPointer) {
        bodyBytes += bytes.count
        let excess = max(0, bodyBytes - (maximumBodyBytes ?? .max))
        if excess > 0 { stop = .bodyTooLarge }
        let wanted = bytes.dropLast(excess)
        if !wanted.isEmpty { deliver(.body(Array(wanted))) }
    }

    // MARK: The end

    /// Reports the end. The handle has been removed from its multi handle, and nothing is delivered after.
    func finish(_ code: CURLcode) {
        deliver(.end(code == CURLE_OK ? .success(summary) : .failure(failure(of: code))))
    }

    /// Reports an end that libcurl has no part in.
    func finish(_ code: CURLcode, errno: CInt = 0, message: String) {
        deliver(.end(.failure(failure(code: Int32(code.rawValue), errno: errno, message: message))))
    }

    private func failure(of code: CURLcode) -> TransferFailure {
        switch stop {
        case .unbound(let error):
            let interfaceFailed = Int32(CURLE_INTERFACE_FAILED.rawValue)
            return failure(code: interfaceFailed, errno: error.errno, message: "\(error)")
        case .headTooLarge: return headTooLarge
        case .bodyTooLarge:
            let message = "the response's body is longer than \(maximumBodyBytes ?? 0) bytes"
            return failure(code: Int32(CURLE_FILESIZE_EXCEEDED.rawValue), message: message)
        case nil:
            // libcurl gives up on a single line of 100 KiB as if memory had run out.
            if code == CURLE_OUT_OF_MEMORY, reachedPhase == .response, !head.isComplete {
                return headTooLarge
            }
            let text = message.text ?? String(cString: curl_easy_strerror(code))
            let errno = CInt(easy.long(CURLINFO_OS_ERRNO))
            return failure(code: Int32(code.rawValue), errno: errno, message: text)
        }
    }

    /// `CURLE_TOO_LARGE`, which Debian 12's header does not have yet.
    private var headTooLarge: TransferFailure {
        failure(code: 100, message: "the response's head is longer than \(HeadParser.maximumBytes) bytes")
    }

    private func failure(code: Int32, errno: CInt = 0, message: String) -> TransferFailure {
        TransferFailure(
            code: code,
            osErrno: errno,
            phase: reachedPhase,
            bytesSent: bytesSent,
            reusedConnection: reusedConnection,
            message: message
        )
    }

    private var bytesSent: Int64 {
        Int64(easy.long(CURLINFO_REQUEST_SIZE)) + easy.offset(CURLINFO_SIZE_UPLOAD_T)
    }

    private var isReady: Bool { easy.offset(CURLINFO_PRETRANSFER_TIME_T) > 0 }

    private var reusedConnection: Bool { isReady && easy.long(CURLINFO_NUM_CONNECTS) == 0 }

    private var reachedPhase: TransferFailure.Phase {
        if head.hasBegun { return .response }
        if isReady {
            let isSent = bytesSent > bodyCount && easy.offset(CURLINFO_SIZE_UPLOAD_T) >= bodyCount
            return isSent ? .response : .request
        }
        // CURLINFO_CONNECT_TIME stays 0 until the handshake is over; the socket's own port does not.
        guard easy.long(CURLINFO_LOCAL_PORT) > 0 else { return .connect }
        return isSecure ? .tls : .request
    }

    private var summary: TransferSummary {
        TransferSummary(
            nameLookup: easy.time(CURLINFO_NAMELOOKUP_TIME_T),
            connect: easy.time(CURLINFO_CONNECT_TIME_T),
            tls: easy.time(CURLINFO_APPCONNECT_TIME_T),
            firstByte: easy.time(CURLINFO_STARTTRANSFER_TIME_T),
            total: easy.time(CURLINFO_TOTAL_TIME_T),
            bytesSent: bytesSent,
            bytesReceived: easy.offset(CURLINFO_SIZE_DOWNLOAD_T),
            reusedConnection: reusedConnection
        )
    }
}

/// Owner of what `CURLOPT_ERRORBUFFER` writes to.
private struct MessageBuffer: ~Copyable {
    let rawValue = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { rawValue.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE)) }

    deinit { rawValue.deallocate() }

    var text: String? {
        rawValue.pointee == 0 ? nil : String(cString: rawValue)
    }
}
