package annotation

import (
	"encoding/json"
	"fmt"
)

// Decode reads the JSON text of an annotation; nil when the text is empty. The error names the key.
func Decode[T any](key, text string) (*T, error) {
	if text == "" {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return nil, fmt.Errorf("read annotation %s: %w", key, err)
	}
	return v, nil
}

// Encode marshals types that always marshal: maps, texts, times and quantities.
func Encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return string(text)
}
