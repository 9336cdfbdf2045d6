/// The version of this package.
package enum NetwatchVersion {
    /// The version, such as `1.2.0`. scripts/release changes it.
    package static let current = "0.1.0"
}
