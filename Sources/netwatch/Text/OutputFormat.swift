internal import ArgumentParser

/// The output format of data.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
    case text
    case json
}
