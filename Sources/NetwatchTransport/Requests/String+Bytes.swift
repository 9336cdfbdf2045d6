extension String {
    /// Returns whether all bytes of the text in UTF-8 satisfy a condition.
    ///
    /// The same as `utf8.allSatisfy`, which takes longer, because it computes an index for each byte. Each request
    /// checks the bytes of its URL and of its header fields.
    @inlinable package func allBytes(_ isAccepted: (UInt8) -> Bool) -> Bool {
        utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isAccepted) } ?? utf8.allSatisfy(isAccepted)
    }

    /// Returns whether two tokens are equal except for the case of ASCII letters.
    func equalsIgnoringCase(_ other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0.lowercasedASCII == $1.lowercasedASCII }
    }
}
