// Package fuzz makes the fuzz targets of features: targets of admission (Admission) and of conversion (Conversion). Only
// tests may import it.
//
// JSON of an object and a script go in. The script is a row of bytes that edits the object: it follows the schema of the
// CRD, so that most of the edited objects get past the API server. A target sends both objects to the webhooks as the API
// server does, and checks the answers. Seeds are the objects of YAML files, each with some scripts.
package fuzz
