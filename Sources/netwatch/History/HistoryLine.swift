internal import NetwatchService

/// The JSON output for a host: the response of the service, and the type of the line.
struct HistoryLine: Encodable {
    let history: ControlMessage.History

    private enum CodingKeys: String, CodingKey {
        case type
    }

    func encode(to encoder: any Encoder) throws {
        try history.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode("history", forKey: .type)
    }
}
