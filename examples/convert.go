// Converts a picture to WebP: go run convert.go PICTURE WEBP [NAME=VALUE ...]
//
// The token is in TOWEBP_TOKEN, the server in TOWEBP_URL (default http://127.0.0.1:8080).
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var mediaTypes = map[string]string{
	".png":  "image/png",
	".jpg":  "image/jpeg",
	".jpeg": "image/jpeg",
	".gif":  "image/gif",
	".bmp":  "image/bmp",
}

const mostWaiting = 60 // seconds

// A problem as the server tells it (RFC 9457).
type problem struct {
	Title, Detail string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("usage: go run convert.go PICTURE WEBP [NAME=VALUE ...]")
	}
	parameters := url.Values{}
	for _, argument := range arguments[2:] {
		name, value, _ := strings.Cut(argument, "=")
		parameters.Set(name, value)
	}
	mediaType := mediaTypes[strings.ToLower(filepath.Ext(arguments[0]))]
	if mediaType == "" {
		return fmt.Errorf("%s: not a name of a PNG, JPEG, GIF or BMP", arguments[0])
	}
	picture, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	webp, err := convert(picture, mediaType, parameters)
	if err != nil {
		return err
	}
	return os.WriteFile(arguments[1], webp, 0o644)
}

// convert gives the WebP of a picture, or the server's words if there is none.
func convert(picture []byte, mediaType string, parameters url.Values) ([]byte, error) {
	response, body, err := send(picture, mediaType, parameters)
	if err != nil {
		return nil, err
	}
	wait, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err == nil && wait <= mostWaiting {
		time.Sleep(time.Duration(wait) * time.Second)
		if response, body, err = send(picture, mediaType, parameters); err != nil {
			return nil, err
		}
	}
	if warning := response.Header.Get("X-Towebp-Warning"); warning != "" {
		fmt.Fprintln(os.Stderr, warning)
	}
	if response.StatusCode == http.StatusOK {
		return body, nil
	}
	var told problem
	if json.Unmarshal(body, &told) == nil && told.Title != "" {
		return nil, fmt.Errorf("%s: %s", told.Title, told.Detail)
	}
	return nil, fmt.Errorf("the server answered %s", response.Status)
}

func send(picture []byte, mediaType string, parameters url.Values) (*http.Response, []byte, error) {
	server := os.Getenv("TOWEBP_URL")
	if server == "" {
		server = "http://127.0.0.1:8080"
	}
	token := os.Getenv("TOWEBP_TOKEN")
	if token == "" {
		return nil, nil, errors.New("TOWEBP_TOKEN is not set")
	}
	target := server + "/convert?" + parameters.Encode()
	request, err := http.NewRequest(http.MethodPost, target, bytes.NewReader(picture))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", mediaType)
	client := http.Client{Timeout: 2 * time.Minute}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}
