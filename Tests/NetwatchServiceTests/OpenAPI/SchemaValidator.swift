/// Checks values against the part of JSON Schema 2020-12 that docs/openapi.json uses.
struct SchemaValidator: Sendable {
    let document: OpenAPIDocument
    /// Whether a member that the schema of an object does not name is a fault. The service sends only documented
    /// members, although clients must ignore others.
    var isStrict = false

    private static let annotations: Set<String> = [
        "description", "format", "contentEncoding", "contentMediaType", "contentSchema", "x-derived",
    ]

    /// Returns what is wrong with a value; empty if it is valid. A keyword that the validator does not know is a fault.
    func faults(of value: JSONValue, _ schema: JSONValue, at path: String = "$") -> [String] {
        var found: [String] = []
        for (keyword, argument) in schema.members where !Self.annotations.contains(keyword) {
            found += faults(of: value, keyword, argument, schema).map { "\(path): \($0)" }
            found += nestedFaults(of: value, keyword, argument, at: path)
        }
        if isStrict {
            found += unknownMembers(of: value, schema).map { "\(path): `\($0)` is not documented" }
        }
        return found.sorted()
    }

    /// Returns the members of an object that its schema does not name.
    private func unknownMembers(of value: JSONValue, _ schema: JSONValue) -> [String] {
        guard schema["type"] == .string("object"), let properties = schema["properties"] else { return [] }
        return value.members.keys.filter { properties[$0] == nil }.sorted()
    }

    /// Returns the faults of the value itself.
    private func faults(
        of value: JSONValue,
        _ keyword: String,
        _ argument: JSONValue,
        _ schema: JSONValue
    ) -> [String] {
        switch keyword {
        case "type":
            let types = argument.string.map { [$0] } ?? argument.elements.compactMap(\.string)
            return types.contains(where: value.isOfType) ? [] : ["is not of the type \(types)"]
        case "const": return value == argument ? [] : ["differs from the constant"]
        case "enum": return argument.elements.contains(value) ? [] : ["is not one of the values"]
        case "required":
            guard case .object(let members) = value else { return [] }
            return argument.elements.compactMap(\.string).filter { members[$0] == nil }.map {
                "`\($0)` is missing"
            }
        case "additionalProperties":
            let properties = schema["properties"] ?? .null
            return value.members.keys.filter { properties[$0] == nil }.sorted().map {
                "`\($0)` is not accepted"
            }
        case "oneOf":
            let matches = argument.elements.count { faults(of: value, $0).isEmpty }
            return matches == 1 ? [] : ["matches \(matches) of the alternatives"]
        case "anyOf":
            return argument.elements.contains { faults(of: value, $0).isEmpty }
                ? [] : ["matches no alternative"]
        case "pattern": return value.string.map { matches($0, argument) } ?? true ? [] : ["has another form"]
        case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems":
            return isWithin(keyword, argument, value) ? [] : ["exceeds `\(keyword)`"]
        case "$ref", "allOf", "properties", "items": return []
        default: return ["the keyword `\(keyword)` is not known"]
        }
    }

    /// Returns the faults that other schemas find in the value or in its parts.
    private func nestedFaults(
        of value: JSONValue,
        _ keyword: String,
        _ argument: JSONValue,
        at path: String
    ) -> [String] {
        switch keyword {
        case "$ref": faults(of: value, document.resolved(.object(["$ref": argument])), at: path)
        case "allOf": argument.elements.flatMap { faults(of: value, $0, at: path) }
        case "items":
            value.elements.enumerated().flatMap { faults(of: $1, argument, at: "\(path)[\($0)]") }
        case "properties":
            argument.members.flatMap { name, schema in
                value[name].map { faults(of: $0, schema, at: "\(path).\(name)") } ?? []
            }
        default: []
        }
    }

    private func matches(_ text: String, _ pattern: JSONValue) -> Bool {
        guard let regex = try? Regex(pattern.string ?? "") else { return false }
        return text.firstMatch(of: regex) != nil
    }

    private func isWithin(_ keyword: String, _ argument: JSONValue, _ value: JSONValue) -> Bool {
        let measured: Double?
        switch (keyword.suffix(6), value) {
        case ("Length", .string(let text)): measured = Double(text.unicodeScalars.count)
        case (_, .array(let elements)) where keyword.hasSuffix("Items"): measured = Double(elements.count)
        case (_, .number(let number)) where keyword.hasSuffix("imum"): measured = number
        default: measured = nil
        }
        guard let measured, let limit = argument.number else { return true }
        return keyword.hasPrefix("min") ? measured >= limit : measured <= limit
    }
}

extension JSONValue {
    fileprivate func isOfType(_ type: String) -> Bool {
        switch (self, type) {
        case (.null, "null"), (.boolean, "boolean"), (.number, "number"), (.string, "string"),
            (.array, "array"),
            (.object, "object"):
            true
        case (.number(let number), "integer"): number.rounded() == number
        default: false
        }
    }
}
