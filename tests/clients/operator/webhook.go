package operator

import (
	"context"
	"fmt"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Hooks set defaults for a Site and reject invalid ones.
type Hooks struct{}

func (Hooks) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &Site{}).WithDefaulter(Hooks{}).WithValidator(Hooks{}).Complete()
}

func (Hooks) Default(_ context.Context, site *Site) error {
	if site.Spec.Image == "" {
		site.Spec.Image = "nginx:stable"
	}
	return nil
}

func (Hooks) validate(site *Site) (admission.Warnings, error) {
	if strings.TrimSpace(site.Spec.Title) == "" {
		return nil, fmt.Errorf("a site needs a title")
	}
	if strings.ToUpper(site.Spec.Title) == site.Spec.Title {
		return admission.Warnings{"the title shouts"}, nil
	}
	return nil, nil
}

func (h Hooks) ValidateCreate(_ context.Context, site *Site) (admission.Warnings, error) {
	return h.validate(site)
}

func (h Hooks) ValidateUpdate(_ context.Context, _, site *Site) (admission.Warnings, error) {
	return h.validate(site)
}

func (Hooks) ValidateDelete(context.Context, *Site) (admission.Warnings, error) { return nil, nil }
