internal import FoundationEssentials

extension Date {
    /// - Parameter milliseconds: Milliseconds since 1970.
    init(milliseconds: Int64) {
        self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}
