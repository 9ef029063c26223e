{{/* What the Jobs of hooks have in common. */}}
{{- define "weir.hookJob" -}}
backoffLimit: 3
activeDeadlineSeconds: {{ .root.Values.hooks.deadlineSeconds }}
template:
  metadata:
    labels:
      {{- include "weir.labels" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  spec:
    serviceAccountName: {{ .account }}
    restartPolicy: Never
    enableServiceLinks: false
    securityContext:
      {{- include "weir.podSecurityContext" .root | nindent 6 }}
    {{- with include "weir.placement" .root | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    containers:
      - name: {{ .component }}
        image: {{ include "weir.image" .root | quote }}
        imagePullPolicy: {{ .root.Values.image.pullPolicy }}
        args:
          {{- toYaml .args | nindent 10 }}
        env:
          - name: POD_NAMESPACE
            valueFrom:
              fieldRef:
                fieldPath: metadata.namespace
        resources:
          {{- toYaml .root.Values.hooks.resources | nindent 10 }}
        securityContext:
          {{- include "weir.securityContext" .root | nindent 10 }}
{{- end -}}
