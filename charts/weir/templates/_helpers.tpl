{{/* Names. A release has one operator; its id is its name and namespace. */}}
{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "weir.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Objects without a namespace: two releases of one name in two namespaces must not meet. */}}
{{- define "weir.clusterName" -}}
{{- printf "%s:%s" (include "weir.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "weir.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "weir.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: name the ServiceAccount when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "weir.selectorLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "weir.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "weir.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: weir
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "weir.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What the restricted Pod Security Standard asks for, and what the user lays over it. */}}
{{- define "weir.podSecurityContext" -}}
{{- $default := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- mergeOverwrite $default (deepCopy .Values.podSecurityContext) | toYaml -}}
{{- end -}}

{{- define "weir.securityContext" -}}
{{- $default := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- mergeOverwrite $default (deepCopy .Values.securityContext) | toYaml -}}
{{- end -}}

{{/* What a pod of a hook or test needs to be placed where the operator is. */}}
{{- define "weir.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The namespaces that a release writes to, its own not among them unless it is watched; empty for all. */}}
{{- define "weir.watched" -}}
{{- .Values.watchNamespaces | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* Rules out of a list of the generated file, those whose reach is wanted, with the reason above each. */}}
{{- define "weir.rules" -}}
{{- $reaches := .reaches -}}
{{- range .rules }}
{{- if has .reach $reaches }}
# {{ .why }}
- {{ .rule | toYaml | indent 2 | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Files that the operator reads again when they change: {flag, name, source, key}, as JSON. Whole directories are mounted, which follow their source. */}}
{{- define "weir.files" -}}
{{- $all := list
  (dict "flag" "registries-file" "name" "registries" "source" .Values.registries.file "key" "registries.yaml")
  (dict "flag" "registry-auth-file" "name" "registry-auth" "source" .Values.registries.authFile "key" ".dockerconfigjson")
  (dict "flag" "verification-file" "name" "verification" "source" .Values.verification.file "key" "verification.yaml")
  (dict "flag" "trust-root" "name" "trust-root" "source" .Values.verification.trustRoot "key" "trusted_root.json") -}}
{{- $used := list -}}
{{- range $all -}}
{{- if .source -}}
{{- $used = append $used (set . "key" (default .key .source.key)) -}}
{{- end -}}
{{- end -}}
{{- $used | toJson -}}
{{- end -}}
