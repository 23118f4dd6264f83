"""What the answers depend on: elasticities, options, and the advice that follows."""
