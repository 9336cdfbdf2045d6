@testable internal import NetwatchService

extension ConfigurationInUse {
    /// The defaults, without any file.
    convenience init() {
        let configuration = ServiceConfiguration(stateDirectory: "", socket: "")
        let start = StartConfiguration(configuration: configuration, fallback: nil)
        self.init(start, path: ConfigurationFiles.systemFile) { () throws(InvalidConfiguration) in
            configuration
        }
    }
}
