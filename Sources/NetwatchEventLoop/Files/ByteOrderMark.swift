extension Collection<UInt8> {
    /// The bytes without the byte order mark that some editors write at the start of a UTF-8 file. Text files that people
    /// write may begin with it.
    package var withoutByteOrderMark: SubSequence {
        starts(with: [0xef, 0xbb, 0xbf] as [UInt8]) ? dropFirst(3) : self[...]
    }
}
