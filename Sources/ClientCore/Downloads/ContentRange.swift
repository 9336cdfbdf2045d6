internal import NetwatchTransport

/// The value of a `Content-Range` field (RFC 9110 §14.4).
enum ContentRange: Hashable, Sendable {
    /// `bytes 2-5/10`; the total is `nil` for `*`.
    case part(ClosedRange<Int64>, total: Int64?)
    /// `bytes */10`, in a 416 response to a request for bytes that do not exist.
    case unsatisfied(total: Int64)

    /// Parses a value. Returns `nil` if the text has neither of these forms, or if the range contradicts the total.
    init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let total = Self.number(halves[1])
        guard total != nil || halves[1] == "*" else { return nil }
        if halves[0] == "*" {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
        } else {
            guard let range = Self.range(halves[0]), total.map({ range.upperBound < $0 }) ?? true else {
                return nil
            }
            self = .part(range, total: total)
        }
    }

    private static func range(_ text: Substring) -> ClosedRange<Int64>? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = number(ends[0]), let last = number(ends[1]), first <= last else {
            return nil
        }
        return first...last
    }

    /// Parses 1 to 18 digits, which cannot overflow. `Int64.init` alone would accept a sign.
    private static func number(_ text: Substring) -> Int64? {
        guard 1...18 ~= text.utf8.count, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return Int64(text)
    }
}

extension TransferHead {
    /// The number of bytes in the body of a 206 with a single range and without an encoding; `nil` for other responses.
    var partLength: Int64? {
        guard status == 206, !isEncoded,
            case .part(let range, _)? = singleField("content-range").flatMap(ContentRange.init)
        else { return nil }
        return Int64(range.count)
    }
}
