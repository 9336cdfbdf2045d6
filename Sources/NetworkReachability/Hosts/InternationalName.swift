/// Names with letters beyond ASCII, in the form that name servers know (RFC 5891).
package enum InternationalName {
    /// Returns a name with its labels in the form `xn--…`; `nil` if the name is ASCII, or if this form depends on
    /// mappings that are not implemented here, for example of decomposed letters.
    package static func ascii(_ name: String) -> String? {
        guard !name.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        let labels = name.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        let encoded = labels.compactMap(encoded)
        guard encoded.count == labels.count else { return nil }
        return encoded.joined(separator: ".")
    }

    /// Returns how a name must be written instead, for messages that refuse it; `nil` if that is not known.
    package static func advice(for name: String) -> String? {
        ascii(name).map { "an international name must be written as `\($0)`" }
    }

    private static func encoded(_ label: Substring) -> String? {
        let scalars = Array(label.unicodeScalars)
        if scalars.allSatisfy(\.isASCII) { return String(label) }
        guard scalars.allSatisfy(isUnmapped), let digits = Punycode.encoded(scalars.map(\.value)),
            digits.utf8.count <= 59
        else { return nil }
        return "xn--\(digits)"
    }

    /// Whether a character stands for itself: a letter, a digit or a mark that no normalization changes.
    private static func isUnmapped(_ scalar: Unicode.Scalar) -> Bool {
        let properties = scalar.properties
        if scalar.isASCII { return properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "-" }
        return (properties.isAlphabetic || properties.numericType == .decimal)
            && properties.canonicalCombiningClass == .notReordered && !properties.changesWhenNFKCCaseFolded
    }
}

/// Punycode (RFC 3492), with the names of its §6.
private enum Punycode {
    private static let base: UInt32 = 36
    private static let tMin: UInt32 = 1
    private static let tMax: UInt32 = 26
    private static let skew: UInt32 = 38
    private static let damp: UInt32 = 700

    /// Returns the code of a label; `nil` if the label is longer than a label can be.
    static func encoded(_ input: [UInt32]) -> String? {
        // Longer labels could overflow the numbers.
        guard input.count <= 63 else { return nil }
        var output = input.filter { $0 < 0x80 }.map { Character(Unicode.Scalar(UInt8($0))) }
        let basic = output.count
        if basic > 0 { output.append("-") }
        var (n, delta, bias, handled) = (UInt32(0x80), UInt32(0), UInt32(72), basic)
        while handled < input.count, let next = input.filter({ $0 >= n }).min() {
            delta += (next - n) * UInt32(handled + 1)
            n = next
            for point in input {
                if point < n { delta += 1 }
                guard point == n else { continue }
                output += digits(of: delta, bias)
                bias = adapted(delta, UInt32(handled + 1), isFirst: handled == basic)
                (delta, handled) = (0, handled + 1)
            }
            (delta, n) = (delta + 1, n + 1)
        }
        return String(output)
    }

    /// Returns a delta as a variable-length integer.
    private static func digits(of delta: UInt32, _ bias: UInt32) -> [Character] {
        var (q, k, output) = (delta, base, [Character]())
        while true {
            let t = k <= bias ? tMin : min(k - bias, tMax)
            guard q >= t else { return output + [digit(q)] }
            output.append(digit(t + (q - t) % (base - t)))
            (q, k) = ((q - t) / (base - t), k + base)
        }
    }

    private static func digit(_ value: UInt32) -> Character {
        Character(Unicode.Scalar(UInt8(value < 26 ? value + 97 : value - 26 + 48)))
    }

    private static func adapted(_ delta: UInt32, _ points: UInt32, isFirst: Bool) -> UInt32 {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / points
        var k: UInt32 = 0
        while delta > (base - tMin) * tMax / 2 { (delta, k) = (delta / (base - tMin), k + base) }
        return k + (base - tMin + 1) * delta / (delta + skew)
    }
}
