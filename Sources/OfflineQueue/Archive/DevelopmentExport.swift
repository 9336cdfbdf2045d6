internal import ClientCore
internal import Foundation

/// The options of a request in an export that a development version has written. Such an export has the members of the
/// stored record in the request itself, except two.
///
/// Existing queues of development versions move by export and import. This file can be removed after the first release.
enum DevelopmentExport {
    private enum Names: String, CodingKey {
        case maximumAttempts
        /// Such as `response=600000,total=900000,http-version=1.1,retry=404+500-599,record=none`.
        case timeouts
    }

    /// - Parameter decoder: Decodes the request.
    static func options(from decoder: any Decoder) throws -> EnqueueOptions {
        var options = EnqueueOptions()
        try options.decodeStored(decoder.container(keyedBy: MemberName.self))
        let names = try decoder.container(keyedBy: Names.self)
        options.maximumAttempts = try names.decodeIfPresent(Int.self, forKey: .maximumAttempts)
        let settings = try names.decodeIfPresent(String.self, forKey: .timeouts) ?? ""
        for setting in settings.split(separator: ",") { try read(setting, into: &options) }
        return options
    }

    private static func read(_ setting: Substring, into options: inout EnqueueOptions) throws(QueueError) {
        let pair = setting.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let value = pair.count == 2 ? String(pair[1]) : ""
        switch (pair[0], Int64(value), HTTPVersion(rawValue: value)) {
        case ("connect", let number?, _): options.timeouts.connect = .milliseconds(number)
        case ("response", let number?, _): options.timeouts.response = .milliseconds(number)
        case ("total", let number?, _): options.timeouts.total = .milliseconds(number)
        case ("http-version", _, let version?): options.httpVersion = version
        case ("retry", _, _):
            options.statusRules.retry = try StatusRanges.parse(value.replacing("+", with: ","))
        case ("dead", _, _):
            options.statusRules.dead = try StatusRanges.parse(value.replacing("+", with: ","))
        case ("record", _, _) where value == "none": options.isRecorded = false
        default:
            throw QueueError(
                .invalidOption,
                "the setting \(quoted(String(setting))) of the attempts is unknown; accepted: `connect=`, `response=` and "
                    + "`total=` with milliseconds, `http-version=`, `retry=` and `dead=` with statuses, and `record=none`"
            )
        }
    }
}
