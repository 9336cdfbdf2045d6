/// The statuses that will do.
///
/// They are looked at once, when validation is asked for: a sequence may be good for one pass only, and a
/// request that is retried is validated again.
struct AcceptableStatusCodes: Sendable {
    private let codes: Set<Int>

    /// - Parameter codes: Any finite sequence, or a range that has no upper end.
    init(_ codes: some Sequence<Int>) {
        // HTTP's statuses have three digits (RFC 9110 §15), and a range may have far more numbers.
        let all = 0..<1000
        switch codes {
        case let range as Range<Int>: self.codes = Set(range.clamped(to: all))
        case let range as ClosedRange<Int>: self.codes = Set(all.filter(range.contains))
        case let range as PartialRangeFrom<Int>: self.codes = Set(all.filter(range.contains))
        default: self.codes = Set(codes)
        }
    }

    func contains(_ code: Int) -> Bool { codes.contains(code) }
}
