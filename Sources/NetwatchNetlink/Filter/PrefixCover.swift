internal import NetwatchEventLoop

/// A cover of many addresses of one family by few prefixes.
struct PrefixCover {
    private let family: IPAddress.Family
    /// The distinct addresses in ascending order.
    private let addresses: [UInt128]
    /// For each length from 0 to 128, the number of pairs of adjacent addresses that have exactly this many leading
    /// bits in common.
    private let commonLengths: [Int]

    /// Creates a cover.
    ///
    /// - Parameter addresses: The ``IPAddress/bits`` of the addresses, in any order.
    init(addresses: [UInt128], family: IPAddress.Family) {
        let sorted = Set(addresses).sorted()
        self.family = family
        self.addresses = sorted
        commonLengths = zip(sorted, sorted.dropFirst()).reduce(into: Array(repeating: 0, count: 129)) {
            $0[Self.commonLength($1.0, $1.1)] += 1
        }
    }

    /// Returns disjoint, sorted prefixes that together contain all addresses.
    ///
    /// Adjacent addresses share a prefix if they have a minimum number of leading bits in common. The minimum is the
    /// same for all, so no prefix is inside another.
    func prefixes(atMost limit: Int) -> [IPPrefix] {
        guard let first = addresses.first else { return [] }
        let length = longestLength(limit: limit)
        var prefixes: [IPPrefix] = []
        var (start, end) = (first, first)
        for address in addresses.dropFirst() {
            if Self.commonLength(end, address) < length {
                prefixes.append(prefix(from: start, to: end))
                start = address
            }
            end = address
        }
        return prefixes + [prefix(from: start, to: end)]
    }

    /// Returns the largest minimum of common bits that results in at most `limit` prefixes.
    private func longestLength(limit: Int) -> Int {
        var groups = 1
        for length in 0...128 {
            groups += commonLengths[length]
            if groups > limit { return length }
        }
        return 129
    }

    private func prefix(from first: UInt128, to last: UInt128) -> IPPrefix {
        IPPrefix(family, bits: first, length: Self.commonLength(first, last))
    }

    private static func commonLength(_ left: UInt128, _ right: UInt128) -> Int {
        (left ^ right).leadingZeroBitCount
    }
}
