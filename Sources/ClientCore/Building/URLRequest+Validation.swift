internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension URLRequest {
    /// What is sent after the head.
    enum Body {
        /// What the request has itself.
        case own
        /// A file, a stream or a form, of so many bytes if that is known.
        case upload(byteCount: Int64?)
    }

    /// Refuses what cannot be sent, or would put something else on the wire than was meant.
    ///
    /// What `setValue(_:forHTTPHeaderField:)` was given with a line break or NUL in it cannot be refused
    /// here: Foundation has left it out already.
    ///
    /// - Parameters:
    ///   - allowedSchemes: Schemes of URLs, in lower case. Default `http` and `https`.
    ///   - body: What is sent. Default: what the request has itself.
    ///   - fields: The header fields that are sent. Default: those of the request.
    /// - Throws: ``AFError/invalidURL(url:)`` or ``AFError/urlRequestValidationFailed(reason:)``.
    func validateForSending(
        allowedSchemes: Set<String> = ["http", "https"],
        body: Body = .own,
        fields: [TransferRequest.Header]? = nil
    ) throws {
        try validateURL(allowedSchemes)
        try validateMethod()
        try validateTimeout()
        try validate(body)
        // Sorted, so that of several culprits the same one is named each time.
        for field in fields ?? (allHTTPHeaderFields ?? [:]).sortedFields {
            let (name, value) = (field.name, field.value)
            guard Self.isSendable(name, value), !contradicts(name, value, byteCount(body)) else {
                throw AFError.urlRequestValidationFailed(reason: .invalidHeader(name: name, value: value))
            }
        }
    }

    private func validateURL(_ allowedSchemes: Set<String>) throws {
        guard let url else { throw AFError.invalidURL(url: "") }
        guard let scheme = url.scheme, allowedSchemes.contains(scheme.lowercased()) else {
            throw AFError.urlRequestValidationFailed(reason: .unsupportedScheme(url))
        }
        guard let host = url.host(percentEncoded: false), !host.isEmpty else {
            throw AFError.urlRequestValidationFailed(reason: .missingHost(url))
        }
        // The rest is encoded by URL.
        guard url.absoluteString.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }),
            URL.fault(ofHost: host, port: url.port) == nil
        else { throw AFError.invalidURL(url: url) }
    }

    private func validateMethod() throws {
        let method = httpMethod ?? "GET"
        // CONNECT turns the connection into a tunnel, which only a proxy can be asked for.
        guard HTTPToken.isValid(method), method.uppercased() != "CONNECT" else {
            throw AFError.urlRequestValidationFailed(reason: .invalidMethod(method))
        }
    }

    private func validateTimeout() throws {
        // What is not a number is not at least anything.
        guard timeoutInterval >= 0 else {
            let accepted = "seconds from 0, which stands for the session's"
            throw AFError.invalidOption("timeoutInterval", "\(timeoutInterval)", accepted: accepted)
        }
    }

    /// RFC 9110 §9.3.1: what a body means with them is not defined, and servers refuse or ignore it.
    private func validate(_ body: Body) throws {
        guard ["GET", "HEAD"].contains(httpMethod ?? "GET") else { return }
        if case .own = body, httpBody == nil, httpBodyStream == nil { return }
        throw AFError.urlRequestValidationFailed(reason: .bodyDataInGETRequest(httpBody ?? Data()))
    }

    private static func isSendable(_ name: String, _ value: String) -> Bool {
        HTTPToken.isValid(name) && HTTPFieldValue.isValid(value)
    }

    /// Two notions of where the body ends are how requests are smuggled.
    private func contradicts(_ name: String, _ value: String, _ byteCount: Int64?) -> Bool {
        switch name.lowercased() {
        case "transfer-encoding": true
        case "content-length": byteCount.map { value != String($0) } ?? !Self.isLength(value)
        default: false
        }
    }

    /// The bytes of the body; `nil` when only the one who reads it will know.
    private func byteCount(_ body: Body) -> Int64? {
        switch body {
        case .upload(let byteCount): byteCount
        case .own: httpBodyStream == nil ? Int64(httpBody?.count ?? 0) : nil
        }
    }

    private static func isLength(_ text: String) -> Bool {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } && Int64(text) != nil
    }
}

extension URL {
    /// Why nobody can be connected to by these, for people; `nil` if somebody can.
    ///
    /// - Parameter host: Without percent encoding. `%0a` in a path is data; in a name to be looked up it is not.
    static func fault(ofHost host: String, port: Int?) -> String? {
        if let port, !(0...65535).contains(port) { return "port \(port) is not from 0 to 65535" }
        let isName = host.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
        return isName ? nil : "the host \(host.debugDescription) has a character that no name has"
    }
}
