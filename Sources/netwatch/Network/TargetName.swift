internal import NetworkReachability

/// The names of a target for people. In JSON, the path to the public Internet is `general`.
extension PathTarget {
    /// The name in a column: the host or `Internet`.
    var title: String {
        self == .general ? "Internet" : description
    }

    /// The name in a sentence: the host in backticks or `the public Internet`.
    var subject: String {
        self == .general ? "the public Internet" : "`\(self)`"
    }
}
