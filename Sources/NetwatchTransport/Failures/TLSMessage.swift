/// Messages about failed TLS connections.
enum TLSMessage {
    /// Returns a message of libcurl. If it contains an entry of OpenSSL's error queue, such as
    /// `error:0A00010B:SSL routines::wrong version number`, returns the failure in words instead, with OpenSSL's reason
    /// in parentheses.
    static func inWords(_ message: String) -> String {
        guard let start = message.firstRange(of: "error:")?.lowerBound else { return message }
        // `error:CODE:LIBRARY:FUNCTION:REASON`, see ERR_error_string(3).
        let parts = message[start...].split(separator: ":", maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 5, parts[2] == "SSL routines" else { return message }
        let reason = parts[4].firstRange(of: ", errno").map { parts[4][..<$0.lowerBound] } ?? parts[4]
        return "\(meaning(of: reason)) (\(reason))"
    }

    private static func meaning(of reason: Substring) -> String {
        if reason.contains(" alert ") { return "the server refused the TLS connection" }
        return switch reason {
        case "wrong version number", "http request", "packet length too long":
            "the server does not speak TLS on this port"
        case "certificate verify failed": "the server's certificate is not trusted"
        case "unexpected eof while reading": "the server closed the TLS connection early"
        default: "the TLS connection failed"
        }
    }
}
